//! The macro that declares a table of scenario files together with its form.

/// Declares a struct that is a table of scenario files: each field stands here once, with its
/// meaning, type, range and default.
///
/// ```text
/// table! {
///     /// What the table stands for. The first paragraph is what users read.
///     ///
///     /// Further paragraphs are for the documentation of the code alone.
///     pub struct Drawer as "Drawer" needs [label colour] {
///         /// Must be there.
///         pub name: String [text NAME],
///         /// Has a default, which is written out.
///         pub depth: u32 [1..=100] = 20,
///         /// A default that the reference tells in words.
///         pub width: u32 [1..=100] = 40 => "the width of the cupboard",
///         /// What stands for it if it is left out is no value: it is not written out then.
///         pub label: Option<String> => "none",
///         /// The same: at least one of a group behind `needs` has to be there.
///         pub colour: Option<Colour> => "as the cupboard",
///     }
/// }
/// ```
///
/// Behind the fields, `.. pub words: String` has all other keys, each with a `String`.
///
/// What stands in brackets narrows what the type allows; see `limit!`. The type of each field is a
/// [`FieldType`](super::FieldType), or an [`Optional`](super::Optional) one of a field with words.
///
/// From this come the struct itself (with `Clone`, `Debug` and `PartialEq`), `Default` if nothing is
/// required and else `least()`, reading and writing by serde, `table()`, which is its form as data, and
/// `check_fields()`, which holds each field to its range.
///
/// With `or TYPE` a value of that type may stand for the table; see [`Shorthand`](super::Shorthand).
/// With `partial NAME` the file has the struct NAME, where each field may be left out, and the struct
/// itself is made of it by hand.
macro_rules! table {
    (
        $(#[doc = $about:literal])+
        $(#[derive($($derive:ident),+)])?
        $vis:vis struct $name:ident as $title:literal
        $(or $short:ident)?
        $(partial $partial:ident)?
        $(needs $([$($need:ident)+])+)?
        {
            $(
                $(#[doc = $doc:literal])+
                $field_vis:vis $field:ident: $ty:ty
                $([$($limit:tt)+])? $(= $default:expr)? $(=> $words:literal)?,
            )+
            $(.. $(#[doc = $rest_doc:literal])+ $rest_vis:vis $rest:ident: $rest_ty:ty)?
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        $(#[derive($($derive),+)])?
        $vis struct $name {
            $($(#[doc = $doc])+ $field_vis $field: $ty,)+
            $($(#[doc = $rest_doc])+ $rest_vis $rest: std::collections::BTreeMap<String, $rest_ty>,)?
        }

        impl $name {
            /// The form of the table.
            pub(crate) fn table() -> &'static $crate::form::Table {
                static TABLE: std::sync::LazyLock<$crate::form::Table> =
                    std::sync::LazyLock::new(|| $crate::form::Table {
                        title: $title,
                        about: $crate::form::first_paragraph(&[$($about),+]),
                        fields: vec![$($crate::form::Field {
                            name: $crate::form::key(stringify!($field)),
                            about: $crate::form::first_paragraph(&[$($doc),+]),
                            absent: $crate::form::absent!($ty [$(= $default)?] [$(=> $words)?]),
                            kind: {
                                type Given = $crate::form::given!($ty [$(= $default)?] [$(=> $words)?]);
                                let kind = <Given as $crate::form::FieldType>::kind();
                                $(let kind = $crate::form::Limit::<Given>::narrow(
                                    &$crate::form::limit!($($limit)+), kind);)?
                                kind
                            },
                        }),+],
                        rest: [$(<$rest_ty as $crate::form::FieldType>::kind())?].into_iter().next(),
                        needs: &[$($(&[$(stringify!($need)),+]),+)?],
                        #[cfg(test)]
                        reads: $crate::form::reads!($name [$($partial)?]),
                    });
                &TABLE
            }

            /// Holds each field of the table at `path` to its range.
            #[allow(dead_code, reason = "tables that are read by a form of their own check by that")]
            pub(crate) fn check_fields(
                &self,
                path: &str,
                problems: &mut Vec<$crate::error::ScenarioError>,
            ) {
                $({
                    type Given = $crate::form::given!($ty [$(= $default)?] [$(=> $words)?]);
                    let given: Option<&Given> =
                        $crate::form::value!((&self.$field) [$(= $default)?] [$(=> $words)?]);
                    if let Some(value) = given {
                        let path =
                            $crate::field_path::joined(path, $crate::form::key(stringify!($field)));
                        $($crate::form::Limit::<Given>::check(
                            &$crate::form::limit!($($limit)+), value, &path, problems);)?
                        $crate::form::FieldType::check(value, &path, problems);
                    }
                })+
            }
        }

        $crate::form::least_of! {
            $name () {$($rest: std::collections::BTreeMap::new(),)?} $($field [$ty] [$(= $default)?] [$(=> $words)?])+
        }

        $crate::form::serde_of! {
            $name [$($short)?] [$($partial)?] [$($([$($need)+])+)?] [$($rest: $rest_ty)?]
            $($field: [$ty] [$(= $default)?] [$(=> $words)?])+
        }
    };
}

// Behind a field stands `= DEFAULT`, `=> WORDS`, both or neither; these are passed on as
// `[= DEFAULT] [=> WORDS]`.

/// The type of what a field holds where it is there.
macro_rules! given {
    ($ty:ty [] [=> $words:literal]) => {
        <$ty as $crate::form::Optional>::Given
    };
    ($ty:ty [$($default:tt)*] [$($words:tt)*]) => {
        $ty
    };
}

/// What a field holds, if it is there.
macro_rules! value {
    (($field:expr) [] [=> $words:literal]) => {
        $crate::form::Optional::given($field)
    };
    (($field:expr) [$($default:tt)*] [$($words:tt)*]) => {
        Some($field)
    };
}

/// What stands for a field that is left out.
macro_rules! absent {
    ($ty:ty [] []) => {
        $crate::form::Absent::Required
    };
    ($ty:ty [= $default:expr] []) => {
        $crate::form::Absent::default_of::<$ty>(&$default)
    };
    ($ty:ty [$($default:tt)*] [=> $words:literal]) => {
        $crate::form::Absent::Words($words)
    };
}

/// What a field may hold beyond what its type says: `[1..=10]` a range, of a list its length;
/// `[text NAME]` a form of text; `[one of NAMES]` words; `[among
/// NUMBERS]` some numbers.
macro_rules! limit {
    (text $text:ident) => {
        $crate::form::OfText(&$text)
    };
    (one of $names:expr) => {
        $crate::form::OneOf($names)
    };
    (among $numbers:expr) => {
        $crate::form::Among(&$numbers)
    };
    ($range:expr) => {
        $crate::form::Bounds::of($range)
    };
}

/// `least`, which has an argument for each field that is required, or `Default` if none is.
macro_rules! least_of {
    ($name:ident () {$($set:tt)*}) => {
        impl Default for $name {
            fn default() -> Self {
                $name { $($set)* }
            }
        }
    };
    ($name:ident ($($arg:ident: $arg_ty:ty,)+) {$($set:tt)*}) => {
        impl $name {
            /// The table in which nothing is given that may be left out.
            #[allow(dead_code, reason = "few tables are made by hand")]
            pub(crate) fn least($($arg: $arg_ty),+) -> Self {
                $name { $($set)* }
            }
        }
    };
    ($name:ident ($($args:tt)*) {$($set:tt)*} $field:ident [$ty:ty] [] [] $($rest:tt)*) => {
        $crate::form::least_of! {
            $name ($($args)* $field: $ty,) {$($set)* $field,} $($rest)*
        }
    };
    (
        $name:ident ($($args:tt)*) {$($set:tt)*}
        $field:ident [$ty:ty] [$($default:tt)*] [$($words:tt)*] $($rest:tt)*
    ) => {
        $crate::form::least_of! {
            $name ($($args)*) {
                $($set)* $field: $crate::form::default_value!([$($default)*] [$($words)*]),
            } $($rest)*
        }
    };
}

/// What a field has that is left out.
macro_rules! default_value {
    ([= $default:expr] [$($words:tt)*]) => {
        $default
    };
    ([] [=> $words:literal]) => {
        $crate::form::Optional::from_given(None)
    };
}

/// The value of a field that was read.
macro_rules! filled {
    ($given:expr, $field:ident, [] []) => {
        $given
            .ok_or_else(|| serde::de::Error::missing_field($crate::form::key(stringify!($field))))?
            .0
    };
    ($given:expr, $field:ident, [= $default:expr] [$($words:tt)*]) => {
        match $given {
            Some(held) => held.0,
            None => $default,
        }
    };
    ($given:expr, $field:ident, [] [=> $words:literal]) => {
        $crate::form::Optional::from_given($given.map(|held| held.0))
    };
}

/// What a field has that holds `given`.
macro_rules! put {
    ($given:expr, [] [=> $words:literal]) => {
        $crate::form::Optional::from_given(Some($given))
    };
    ($given:expr, [$($default:tt)*] [$($words:tt)*]) => {
        $given
    };
}

/// What serde reads: each field may be left out.
macro_rules! input_of {
    ([] $($field:ident: [$ty:ty] [$($default:tt)*] [$($words:tt)*])+) => {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Input {
            $($field: Option<$crate::form::Held<
                $crate::form::given!($ty [$($default)*] [$($words)*])>>,)+
        }
    };
    (
        [$rest:ident: $rest_ty:ty]
        $($field:ident: [$ty:ty] [$($default:tt)*] [$($words:tt)*])+
    ) => {
        #[derive(serde::Deserialize)]
        struct Input {
            $($field: Option<$crate::form::Held<
                $crate::form::given!($ty [$($default)*] [$($words)*])>>,)+
            #[serde(flatten)]
            $rest: std::collections::BTreeMap<String, $crate::form::Held<$rest_ty>>,
        }
    };
}

/// Reading and writing.
macro_rules! serde_of {
    (
        $name:ident [$($short:ident)?] [] [$([$($need:ident)+])*] [$($rest:ident: $rest_ty:ty)?]
        $($field:ident: [$ty:ty] [$($default:tt)*] [$($words:tt)*])+
    ) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                $crate::form::input_of! {
                    [$($rest: $rest_ty)?] $($field: [$ty] [$($default)*] [$($words)*])+
                }
                let input = <Input as serde::Deserialize>::deserialize(input)?;
                $(if true $(&& input.$need.is_none())+ {
                    let missing = $name::table().missing(&[$(stringify!($need)),+]);
                    return Err(serde::de::Error::custom(missing));
                })*
                Ok($name {
                    $($field: $crate::form::filled!(
                        input.$field, $field, [$($default)*] [$($words)*]),)+
                    $($rest: input.$rest.into_iter().map(|(key, held)| (key, held.0)).collect(),)?
                })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
                let mut table = $crate::form::Written::new(output)?;
                $(table.field(
                    stringify!($field), $crate::form::value!((&self.$field) [$($default)*] [$($words)*]))?;)+
                $(for (key, value) in &self.$rest {
                    table.entry(key, value)?;
                })?
                table.end()
            }
        }

        $crate::form::field_type_of! { $name [$($short)?] }
    };
    (
        $name:ident [] [$partial:ident] [$([$($need:ident)+])*] []
        $($field:ident: [$ty:ty] [$($default:tt)*] [$($words:tt)*])+
    ) => {
        #[doc = concat!("[`", stringify!($name), "`] as a file has it, where each field may be left out.")]
        #[derive(Clone, Debug, Default, PartialEq)]
        pub(crate) struct $partial {
            $(pub(crate) $field: Option<$crate::form::given!($ty [$($default)*] [$($words)*])>,)+
        }

        impl $name {
            /// As a file has it, with its defaults written out.
            pub(crate) fn written(&self) -> $partial {
                $partial {
                    $($field: $crate::form::value!((&self.$field) [$($default)*] [$($words)*]).cloned(),)+
                }
            }
        }

        impl $partial {
            /// The table with all that is given here, and else with what `base` has.
            pub(crate) fn or(self, base: &$name) -> $name {
                $name {
                    $($field: match self.$field {
                        Some(given) => $crate::form::put!(given, [$($default)*] [$($words)*]),
                        None => base.$field.clone(),
                    },)+
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $partial {
            fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                $crate::form::input_of! { [] $($field: [$ty] [$($default)*] [$($words)*])+ }
                let input = <Input as serde::Deserialize>::deserialize(input)?;
                Ok($partial { $($field: input.$field.map(|held| held.0),)+ })
            }
        }

        impl $crate::form::FieldType for $partial {
            fn kind() -> $crate::form::Kind {
                $crate::form::Kind::Table($name::table())
            }

            fn from_input<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                let given = <Self as serde::Deserialize>::deserialize(input)?;
                $(if true $(&& given.$need.is_none())+ {
                    let missing = $name::table().missing(&[$(stringify!($need)),+]);
                    return Err(serde::de::Error::custom(missing));
                })*
                Ok(given)
            }

            fn to_output<S: serde::Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
                let mut table = $crate::form::Written::new(output)?;
                $(table.field(stringify!($field), self.$field.as_ref())?;)+
                table.end()
            }
        }
    };
}

/// What a field of the type may hold: the table, or something short that stands for one.
macro_rules! field_type_of {
    ($name:ident []) => {
        impl $crate::form::FieldType for $name {
            fn kind() -> $crate::form::Kind {
                $crate::form::Kind::Table($name::table())
            }

            fn from_input<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                <Self as serde::Deserialize>::deserialize(input)
            }

            fn to_output<S: serde::Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
                serde::Serialize::serialize(self, output)
            }

            fn check(&self, path: &str, problems: &mut Vec<$crate::error::ScenarioError>) {
                self.check_fields(path, problems);
            }
        }
    };
    ($name:ident [$short:ident]) => {
        impl $crate::form::FieldType for $name {
            fn kind() -> $crate::form::Kind {
                let short = <$short as $crate::form::FieldType>::kind();
                let short = <$name as $crate::form::Shorthand<$short>>::narrow(short);
                $crate::form::Kind::Either(vec![short, $crate::form::Kind::Table($name::table())])
            }

            fn from_input<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                $crate::form::table_or_short::<Self, $short, D>(input)
            }

            fn to_output<S: serde::Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
                match $crate::form::Shorthand::<$short>::short(self) {
                    Some(short) => $crate::form::FieldType::to_output(&short, output),
                    None => serde::Serialize::serialize(self, output),
                }
            }

            fn check(&self, path: &str, problems: &mut Vec<$crate::error::ScenarioError>) {
                self.check_fields(path, problems);
            }
        }
    };
}

/// Whether the reader takes a table, and if not, why.
#[cfg(test)]
macro_rules! reads {
    ($name:ident []) => {
        |text| {
            let table: $name = toml::from_str(text).map_err(|error| error.message().to_owned())?;
            let mut problems = Vec::new();
            table.check_fields("", &mut problems);
            problems.first().map_or(Ok(()), |problem| Err(problem.to_string()))
        }
    };
    ($name:ident [$partial:ident]) => {
        |text| {
            let table: $partial =
                toml::from_str(text).map_err(|error| error.message().to_owned())?;
            let table = $name::try_from(table).map_err(|error| error.to_string())?;
            let mut problems = Vec::new();
            table.check_fields("", &mut problems);
            problems.first().map_or(Ok(()), |problem| Err(problem.to_string()))
        }
    };
}

#[cfg(test)]
pub(crate) use reads;
pub(crate) use {
    absent, default_value, field_type_of, filled, given, input_of, least_of, limit, put, serde_of,
    table, value,
};
