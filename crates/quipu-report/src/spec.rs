//! Vega-Lite specifications from typed parts.
//!
//! A [`Spec`] names its dataset and sets neither fonts nor a width, and no colours but those of verdicts: the
//! page does, and so can a notebook. See <https://vega.github.io/vega-lite/docs/> for what the fields mean.

mod field;
mod meaning;

use serde::Serialize;
use serde_json::Value;

pub use self::field::{End, Field};

/// The schema that specifications keep to.
const SCHEMA: &str = "https://vega.github.io/schema/vega-lite/v6.json";

/// One plot: a view, or layers on the same axes.
#[derive(Clone, Debug, Serialize)]
pub struct Spec {
    #[serde(rename = "$schema")]
    schema: &'static str,
    data: Data,
    #[serde(skip_serializing_if = "Option::is_none")]
    usermeta: Option<Value>,
    width: &'static str,
    height: Value,
    #[serde(skip_serializing_if = "Encodings::is_empty")]
    encoding: Encodings,
    layer: Vec<Child>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resolve: Option<Value>,
}

/// A layer, or several that share their axes.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum Child {
    One(Box<Layer>),
    Group { layer: Vec<Child> },
}

/// Rows of a dataset, or one row without columns.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum Data {
    Named { name: String },
    One { values: [Value; 1] },
}

/// Marks of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct Layer {
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Data>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    transform: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    params: Vec<Value>,
    mark: Mark,
    #[serde(skip_serializing_if = "Encodings::is_empty")]
    encoding: Encodings,
}

/// A kind of mark and its looks, apart from colours.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    interpolate: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thickness: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stroke_width: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    height: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    opacity: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stroke_dash: Option<[u8; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    style: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    align: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dx: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dy: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line_break: Option<&'static str>,
}

/// Channels in the order in which they were given.
#[derive(Clone, Debug, Default)]
pub struct Encodings(Vec<(&'static str, Channel)>);

/// What a channel shows.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Channel {
    /// A column.
    Field(Box<Field>),
    /// Several columns: of tooltips.
    Fields(Vec<Field>),
    /// The column at which marks end.
    End(End),
    /// The same number for every row.
    Datum {
        /// In the units of the axis.
        datum: f64,
    },
}

impl Serialize for Encodings {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, channel)| (name, channel)))
    }
}

impl Encodings {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Spec {
    /// A plot of `dataset`, `height` pixels high.
    pub fn new(dataset: &str, height: u16) -> Spec {
        Spec {
            schema: SCHEMA,
            data: Data::Named { name: dataset.to_owned() },
            usermeta: None,
            width: "container",
            height: Value::from(height),
            encoding: Encodings::default(),
            layer: Vec::new(),
            resolve: None,
        }
    }

    /// A plot of `dataset` whose y axis has `step` pixels for each value.
    pub fn steps(dataset: &str, step: u16) -> Spec {
        Spec {
            height: serde_json::json!({ "step": step, "for": "position" }),
            ..Spec::new(dataset, 0)
        }
    }

    /// Shows `channel` in all layers.
    #[must_use]
    pub fn with(mut self, name: &'static str, channel: impl Into<Channel>) -> Spec {
        self.encoding.0.push((name, channel.into()));
        self
    }

    /// Adds marks on top of those before.
    #[must_use]
    pub fn layer(mut self, layer: Layer) -> Spec {
        self.layer.push(Child::One(Box::new(layer)));
        self
    }

    /// Puts `back` behind all layers so far, with a vertical axis of its own.
    #[must_use]
    pub fn behind(mut self, back: Layer) -> Spec {
        let front = Child::Group { layer: std::mem::take(&mut self.layer) };
        self.layer = vec![Child::One(Box::new(back)), front];
        self.resolve = Some(serde_json::json!({ "scale": { "y": "independent" } }));
        self
    }

    /// Adds, in the colours of `color`, a point at `at` of each row on a line from its column `low` to
    /// its column `high`.
    #[must_use]
    pub fn intervals(self, at: Field, color: &Field, tooltip: &[Field]) -> Spec {
        let low = at.clone().of_column("low");
        let line = Layer::new(Mark::rule().width(2.0))
            .with("x", low)
            .with("x2", Field::end("high"))
            .with("color", color.clone())
            .with("tooltip", tooltip.to_vec());
        let point = Layer::new(Mark::point(60.0))
            .with("x", at)
            .with("color", color.clone())
            .with("shape", color.clone().without_colours())
            .with("tooltip", tooltip.to_vec());
        self.layer(line).layer(point)
    }

    /// Adds a faint band in each row from `low` to `high`, which is part of the axis then however near to
    /// each other the numbers are.
    #[must_use]
    pub fn band(self, low: f64, high: f64) -> Spec {
        let mark = Mark::rect().styled("band").opacity(0.12);
        self.layer(Layer::new(mark).with("x", low).with("x2", high))
    }

    /// The same along the vertical axis.
    #[must_use]
    pub fn band_across(self, low: f64, high: f64) -> Spec {
        let mark = Mark::rect().styled("band").opacity(0.12);
        self.layer(Layer::new(mark).once().with("y", low).with("y2", high))
    }

    /// Adds cells in the colours of their column `ratio`, at most `width` from 1, with the column
    /// `shown` written in them.
    #[must_use]
    pub fn ratio_cells(self, width: f64, tooltip: Vec<Field>) -> Spec {
        let cell = Layer::new(Mark::rect())
            .with("color", Field::number("ratio", "ratio").around_one(width))
            .with("tooltip", tooltip);
        self.layer(cell).layer(Layer::new(Mark::text()).with("text", Field::label("shown")))
    }

    /// Rows have short names in `column`, which begin with a number and a space; `whole` has their whole
    /// names, which the page draws on demand. Vega-Lite leaves such notes to whoever draws.
    #[must_use]
    pub fn named(mut self, column: &str, whole: &str) -> Spec {
        let names = serde_json::json!({ "column": column, "whole": whole });
        self.usermeta = Some(serde_json::json!({ "names": names }));
        self
    }

    /// As JSON.
    pub fn value(&self) -> Value {
        // Texts and numbers in maps with text keys always become JSON.
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl Layer {
    /// Marks that are `mark`.
    pub fn new(mark: Mark) -> Layer {
        let encoding = Encodings::default();
        Layer { data: None, transform: Vec::new(), params: Vec::new(), mark, encoding }
    }

    /// One mark, not one for each row.
    fn once(mut self) -> Layer {
        self.data = Some(Data::One { values: [serde_json::json!({})] });
        self
    }

    /// The plot of this layer can be zoomed along its horizontal axis.
    #[must_use]
    pub fn zoomed(mut self) -> Layer {
        self.params.push(serde_json::json!({
            "name": "zoom", "select": { "type": "interval", "encodings": ["x"] }, "bind": "scales",
        }));
        self
    }

    /// Takes its rows from `dataset` instead of that of the plot.
    #[must_use]
    pub fn of(mut self, dataset: &str) -> Layer {
        self.data = Some(Data::Named { name: dataset.to_owned() });
        self
    }

    /// Shows `channel`.
    #[must_use]
    pub fn with(mut self, name: &'static str, channel: impl Into<Channel>) -> Layer {
        self.encoding.0.push((name, channel.into()));
        self
    }
}

impl Mark {
    /// Lines between points.
    pub fn line() -> Mark {
        Mark { kind: "line", stroke_width: Some(1.8), ..Mark::default() }
    }

    /// Lines that go sideways, then up: of distribution functions.
    pub fn steps() -> Mark {
        Mark { interpolate: Some("step-after"), ..Mark::line() }
    }

    /// Filled areas from zero, or from one column to another.
    pub fn area() -> Mark {
        Mark { kind: "area", ..Mark::default() }
    }

    /// Areas that keep their height from each point to the next.
    pub fn area_steps() -> Mark {
        Mark { interpolate: Some("step-after"), ..Mark::area() }
    }

    /// Bars, `share` of their band thick.
    pub fn bar(share: f64) -> Mark {
        Mark { kind: "bar", height: Some(serde_json::json!({ "band": share })), ..Mark::default() }
    }

    /// Bars that fill their band.
    pub fn thick_bar() -> Mark {
        Mark { kind: "bar", ..Mark::default() }
    }

    /// Thin lines from one value to another.
    pub fn rule() -> Mark {
        Mark { kind: "rule", ..Mark::default() }
    }

    /// Filled points of `size` square pixels.
    pub fn point(size: f64) -> Mark {
        Mark { kind: "point", filled: Some(true), size: Some(size), ..Mark::default() }
    }

    /// Short lines across.
    pub fn tick(size: f64) -> Mark {
        Mark { kind: "tick", size: Some(size), thickness: Some(2.5), ..Mark::default() }
    }

    /// Cells.
    pub fn rect() -> Mark {
        Mark { kind: "rect", ..Mark::default() }
    }

    /// Words or numbers.
    pub fn text() -> Mark {
        Mark { kind: "text", ..Mark::default() }
    }

    /// How opaque the marks are, from 0 to 1.
    #[must_use]
    pub fn opacity(self, opacity: f64) -> Mark {
        Mark { opacity: Some(opacity), ..self }
    }

    /// Texts are broken at their line feeds.
    #[must_use]
    pub fn in_lines(self) -> Mark {
        Mark { line_break: Some("\n"), ..self }
    }

    /// So many pixels above their place.
    #[must_use]
    pub fn above(self, pixels: f64) -> Mark {
        Mark { dy: Some(-pixels), ..self }
    }

    /// Texts begin so many pixels behind their place.
    #[must_use]
    pub fn behind(self, pixels: f64) -> Mark {
        Mark { align: Some("left"), dx: Some(pixels), ..self }
    }

    /// Texts end so many pixels before their place.
    #[must_use]
    pub fn before(self, pixels: f64) -> Mark {
        Mark { align: Some("right"), dx: Some(-pixels), ..self }
    }

    /// Lines of this width, in pixels.
    #[must_use]
    pub fn width(self, pixels: f64) -> Mark {
        Mark { stroke_width: Some(pixels), ..self }
    }

    /// Looks of this name, which the page has.
    #[must_use]
    pub(crate) fn styled(self, style: &'static str) -> Mark {
        Mark { style: Some(style), ..self }
    }

    /// Ticks one pixel thick.
    #[must_use]
    pub fn thin(self) -> Mark {
        Mark { thickness: Some(1.0), ..self }
    }

    /// Lines broken into dashes.
    #[must_use]
    pub fn dashed(self) -> Mark {
        Mark { stroke_dash: Some([4, 3]), ..self }
    }
}

impl From<Field> for Channel {
    fn from(field: Field) -> Channel {
        Channel::Field(Box::new(field))
    }
}

impl From<End> for Channel {
    fn from(end: End) -> Channel {
        Channel::End(end)
    }
}

impl From<Vec<Field>> for Channel {
    fn from(fields: Vec<Field>) -> Channel {
        Channel::Fields(fields.into_iter().map(Field::in_words).collect())
    }
}

impl From<f64> for Channel {
    fn from(datum: f64) -> Channel {
        Channel::Datum { datum }
    }
}
