//! What pictures are drawn on.

use plotters::coord::Shift;
use plotters::prelude::*;

/// The area that is drawn on.
pub(super) type Area<'b> = DrawingArea<SVGBackend<'b>, Shift>;
/// What drawing may refuse.
pub(super) type Refused<'b> = DrawingAreaErrorKind<<SVGBackend<'b> as DrawingBackend>::ErrorType>;

/// Pixels from left to right.
pub(super) const WIDTH: u32 = 860;
/// Of words and axes.
pub(super) const INK: RGBColor = RGBColor(40, 40, 40);

/// What `draw` makes on an area of so many pixels in height; nothing if it cannot be drawn.
pub(super) fn drawn(
    height: i32,
    draw: impl for<'b> FnOnce(&Area<'b>) -> Result<(), Refused<'b>>,
) -> Option<String> {
    let mut svg = String::new();
    {
        let size = (WIDTH, height.unsigned_abs());
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&WHITE).ok()?;
        draw(&area).ok()?;
        area.present().ok()?;
    }
    svg.push('\n');
    Some(svg)
}
