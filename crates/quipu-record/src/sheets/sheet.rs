//! What a table is made of, and how one is declared.

use std::io;

use crate::names::RunNames;
use crate::run::RunRecord;
use crate::tables::{Column, Value};

/// Takes the rows of a table, one after the other.
pub(crate) type HandOn<'h> = dyn FnMut(&[Value<'_>]) -> io::Result<()> + 'h;

/// The rows that a table has of a record: each is handed on.
pub(crate) type RowsOf = fn(&dyn RunNames, &RunRecord, &mut HandOn<'_>) -> io::Result<()>;

/// When a table is there even without a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Always {
    Yes,
    /// If there are flows or cross traffic.
    WithTraffic,
    No,
}

/// A table of results, declared by [`sheet!`].
pub(crate) struct Sheet {
    pub(crate) name: &'static str,
    /// Whether its rows are about single loads: then they begin with visit and client.
    pub(crate) of_loads: bool,
    pub(crate) always: Always,
    /// Its own columns, behind those that all tables share.
    pub(crate) columns: &'static [Column],
    pub(crate) rows: RowsOf,
}

/// Declares the table `$TABLE`: `$rows` of a record with its names, and of each `$row` the columns. A
/// column has a name, a kind, the value of a row, and as its doc comment what it means: CSV, Parquet and
/// `docs/results.md` read no other list. `$given` are values that rows borrow from.
macro_rules! sheet {
    (
        $TABLE:ident = $name:literal, $of_loads:expr, $always:ident,
        |$names:pat_param, $record:ident| {
            $(let $given:ident = $from:expr;)*
            for $row:pat in $rows:expr
        }
        $($(#[doc = $about:literal])+ $column:ident: $kind:ident = $value:expr,)+
    ) => {
        pub(crate) static $TABLE: $crate::sheets::Sheet = $crate::sheets::Sheet {
            name: $name,
            of_loads: $of_loads,
            always: $crate::sheets::Always::$always,
            columns: &$crate::tables::columns! { $($(#[doc = $about])+ $column: $kind,)+ },
            rows: |$names, $record, hand_on| {
                $(let $given = $from;)*
                for $row in $rows {
                    hand_on(&[$($crate::tables::value!($kind, $value)),+])?;
                }
                Ok(())
            },
        };
    };
}

pub(crate) use sheet;
