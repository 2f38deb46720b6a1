//! Columns as channels show them: titles, scales, axes and legends.

use serde::{Serialize, Serializer};
use serde_json::Value;

/// A column as a channel shows it.
#[derive(Clone, Debug, Serialize)]
pub struct Field {
    field: String,
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sort: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scale: Option<Scale>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "axis_or_null")]
    axis: Option<Axis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    legend: Option<Value>,
}

/// A column at which marks end.
#[derive(Clone, Debug, Serialize)]
pub struct End {
    field: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Nominal,
    Ordinal,
    Quantitative,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Scale {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zero: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nice: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clamp: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<Value>,
}

/// Writes an axis that is not drawn as `null`.
fn axis_or_null<S: Serializer>(axis: &Option<Axis>, to: S) -> Result<S::Ok, S::Error> {
    axis.as_ref().filter(|axis| !axis.hidden).serialize(to)
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Axis {
    #[serde(skip)]
    hidden: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label_angle: Option<i16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    orient: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label_expr: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tick_count: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tick_min_step: Option<u8>,
}

impl Field {
    fn new(column: &str, kind: Kind) -> Field {
        Field {
            field: column.to_owned(),
            kind,
            title: None,
            format: None,
            sort: None,
            stack: None,
            scale: None,
            axis: None,
            legend: None,
        }
    }

    /// As tooltips have columns: a title and a format, nothing of how they are drawn.
    pub(super) fn in_words(self) -> Field {
        Field { sort: None, stack: None, scale: None, axis: None, legend: None, ..self }
    }

    /// There is no axis.
    #[must_use]
    pub fn without_axis(mut self) -> Field {
        self.axis.get_or_insert_default().hidden = true;
        self
    }

    /// Pale colours for what lies behind lines.
    #[must_use]
    pub fn pale(mut self) -> Field {
        self.scale.get_or_insert_default().range = Some(Value::from("ordinal"));
        self
    }

    /// A column of numbers.
    pub fn number(column: &str, title: &str) -> Field {
        Field { title: Some(title.to_owned()), ..Field::new(column, Kind::Quantitative) }
    }

    /// A column of names without order; those of `names` have the same colours in every figure.
    pub fn name<'a>(
        column: &str,
        title: &str,
        names: impl IntoIterator<Item = &'a String>,
    ) -> Field {
        let names: Vec<Value> = names.into_iter().cloned().map(Value::from).collect();
        let scale = (!names.is_empty())
            .then(|| Scale { domain: Some(Value::from(names)), ..Scale::default() });
        let title = Some(title.to_owned());
        Field { title, scale, ..Field::new(column, Kind::Nominal) }
    }

    /// A column of names along an axis; those of `order` come first, in this order.
    pub fn row<'a>(
        column: &str,
        title: &str,
        order: impl IntoIterator<Item = &'a String>,
    ) -> Field {
        let order: Vec<String> = order.into_iter().cloned().collect();
        Field {
            title: Some(title.to_owned()),
            sort: (!order.is_empty()).then_some(order),
            ..Field::new(column, Kind::Nominal)
        }
    }

    /// A column of texts along an axis, in the order of their letters.
    pub fn sorted(column: &str, title: &str) -> Field {
        Field { title: Some(title.to_owned()), ..Field::new(column, Kind::Ordinal) }
    }

    /// A column of texts that are written as they are.
    pub fn label(column: &str) -> Field {
        Field::new(column, Kind::Nominal)
    }

    /// The other end of marks that reach from one column to another.
    pub fn end(column: &str) -> End {
        End { field: column.to_owned() }
    }

    /// The names of the column have these colours, in the order of the names.
    pub(super) fn colours(mut self, colours: Vec<Value>) -> Field {
        self.scale.get_or_insert_default().range = Some(Value::from(colours));
        self
    }

    /// The same for a channel of shapes or dashes.
    pub(super) fn without_colours(mut self) -> Field {
        if let Some(scale) = &mut self.scale {
            scale.range = None;
        }
        self
    }

    /// The colours need no explanation.
    #[must_use]
    pub fn no_legend(mut self) -> Field {
        self.legend = Some(Value::Null);
        self
    }

    /// What the column is called.
    #[must_use]
    pub fn titled(mut self, title: &str) -> Field {
        self.title = Some(title.to_owned());
        self
    }

    /// Numbers are written so, as `d3-format` has it.
    #[must_use]
    pub fn format(mut self, format: &'static str) -> Field {
        self.format = Some(format);
        self
    }

    /// Labels of the axis are written so.
    #[must_use]
    pub fn axis_format(mut self, format: &'static str) -> Field {
        self.axis.get_or_insert_default().format = Some(format);
        self
    }

    /// The axis is at the top, where a reader of many rows begins.
    #[must_use]
    pub fn at_top(mut self) -> Field {
        self.axis.get_or_insert_default().orient = Some("top");
        self
    }

    /// Milliseconds along an axis whose labels have units, so that they are short at any length: `200 ms`,
    /// `2.5 s`, `60 s`.
    #[must_use]
    pub fn in_time(mut self) -> Field {
        let axis = self.axis.get_or_insert_default();
        axis.label_expr = Some(
            "datum.value === 0 ? '0' : abs(datum.value) < 1000 ? format(datum.value, '~r') + ' ms' : \
             format(datum.value / 1000, '.9~r') + ' s'",
        );
        axis.tick_count = Some(8);
        self
    }

    /// The axis has ticks at whole numbers only.
    #[must_use]
    pub fn whole(mut self) -> Field {
        self.axis.get_or_insert_default().tick_min_step = Some(1);
        self
    }

    /// Labels of the axis stand at this angle.
    #[must_use]
    pub fn angle(mut self, degrees: i16) -> Field {
        self.axis.get_or_insert_default().label_angle = Some(degrees);
        self
    }

    /// Another column, shown in the same way.
    pub(crate) fn of_column(self, column: &str) -> Field {
        Field { field: column.to_owned(), ..self }
    }

    /// The axis begins at zero, so that lengths are to each other as numbers are.
    #[must_use]
    pub fn from_zero(mut self) -> Field {
        self.scale.get_or_insert_default().zero = Some(true);
        self
    }

    /// The axis need not begin at zero.
    #[must_use]
    pub fn from_least(mut self) -> Field {
        self.scale.get_or_insert_default().zero = Some(false);
        self
    }

    /// A logarithmic axis if `log`, else one that begins at zero.
    #[must_use]
    pub fn log_if(mut self, log: bool) -> Field {
        let scale = self.scale.get_or_insert_default();
        match log {
            true => scale.kind = Some("log"),
            false => scale.zero = Some(true),
        }
        self
    }

    /// The axis has these ends.
    #[must_use]
    pub fn domain(mut self, low: f64, high: f64) -> Field {
        let scale = self.scale.get_or_insert_default();
        scale.domain = Some(serde_json::json!([low, high]));
        scale.nice = Some(false);
        self
    }

    /// Colours go two ways from 1, which both ends are equally far from; beyond `width` they stay the same.
    #[must_use]
    pub fn around_one(mut self, width: f64) -> Field {
        let scale = self.scale.get_or_insert_default();
        scale.domain = Some(serde_json::json!([1.0 - width, 1.0 + width]));
        scale.clamp = Some(true);
        scale.range = Some(Value::from("diverging"));
        self
    }

    /// Values of the same place stand one after the other.
    #[must_use]
    pub fn stacked(mut self) -> Field {
        self.stack = Some(Value::from("zero"));
        self
    }
}
