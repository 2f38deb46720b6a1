//! Policies that are neural networks, in the exchange format ONNX, run by tract.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use thiserror::Error;
use tract_onnx::prelude::*;
use tract_onnx::tract_hir::infer::Factoid;
use tract_onnx::tract_hir::internal::DimLike;

use crate::observation::{LENGTH, PLACES};
use crate::score::Score;

/// A network that takes the numbers of one observation and gives each place a score.
///
/// Sums of its layers have the order that suits the processor's vectors, so that scores may differ in their last digits
/// from those of other machines and of other programs. [`Linear`](crate::Linear) decides the same everywhere.
#[derive(Debug)]
pub struct Network {
    plan: Arc<TypedRunnableModel>,
}

/// What is wrong with the file of a network.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OnnxError {
    /// It cannot be read, or has operators that tract does not know.
    #[error("{0}; expected an ONNX model in one file, of operators that tract has")]
    Unreadable(String),
    /// It has several inputs or outputs, or none.
    #[error("the model has {found} {what}s; expected 1")]
    Count {
        /// `input` or `output`.
        what: &'static str,
        /// How many.
        found: usize,
    },
    /// Its input or output has another type or shape.
    #[error(
        "the model's {what} is {found}; expected float32 of shape [1, {expected}], or with any first dimension"
    )]
    Fact {
        /// `input` or `output`.
        what: &'static str,
        /// Its type and shape.
        found: String,
        /// The second dimension.
        expected: usize,
    },
    /// It draws random numbers, so that no run could be made again.
    #[error("the model has the operator {0}; expected none that draws random numbers")]
    Random(String),
}

fn unreadable(error: impl std::fmt::Display) -> OnnxError {
    OnnxError::Unreadable(format!("{error:#}"))
}

impl Network {
    /// Reads a model with an input of float32 [1, [`LENGTH`]] and an output of float32 [1, [`PLACES`]]. The first
    /// dimension may be left open.
    ///
    /// # Errors
    /// See [`OnnxError`].
    pub fn read(bytes: &[u8]) -> Result<Network, OnnxError> {
        // tract trusts what it reads.
        let read = catch_unwind(AssertUnwindSafe(|| read(bytes)));
        read.unwrap_or_else(|_| Err(unreadable("it is damaged")))
    }
}

fn read(bytes: &[u8]) -> Result<Network, OnnxError> {
    let onnx = tract_onnx::onnx();
    let proto = onnx.proto_model_for_read(&mut &bytes[..]).map_err(unreadable)?;
    let mut operators = proto.graph.iter().flat_map(|graph| &graph.node);
    let draws =
        |name: &str| name.starts_with("Random") || ["Bernoulli", "Multinomial"].contains(&name);
    if let Some(node) = operators.find(|node| draws(&node.op_type)) {
        return Err(OnnxError::Random(node.op_type.clone()));
    }
    let model = onnx.model_for_proto_model(&proto).map_err(unreadable)?;
    let count = |what, found| match found {
        1 => Ok(()),
        _ => Err(OnnxError::Count { what, found }),
    };
    count("input", model.inputs.len())?;
    count("output", model.outputs.len())?;
    let input = model.input_fact(0).map_err(unreadable)?;
    let fits = |at: usize, length: usize| match input.shape.dim(at) {
        // An open shape, or a dimension that has a name.
        None => input.shape.is_open(),
        Some(dim) => dim.concretize().is_none_or(|dim| {
            dim.to_usize().is_ok_and(|it| it == length) || (at == 0 && dim.to_usize().is_err())
        }),
    };
    let rank = input.shape.rank().concretize().is_none_or(|rank| rank == 2);
    let is_single = input.datum_type.concretize().is_none_or(|is| is == DatumType::F32);
    if !(rank && is_single && fits(0, 1) && fits(1, LENGTH)) {
        let found = input.format_dt_shape();
        return Err(OnnxError::Fact { what: "input", found, expected: LENGTH });
    }
    let fact = f32::fact([1, LENGTH]);
    let model = model.with_input_fact(0, fact.into()).and_then(|model| model.into_optimized());
    let model = model.map_err(unreadable)?;
    let output = model.output_fact(0).map_err(unreadable)?;
    if output.datum_type != DatumType::F32 || output.shape.as_concrete() != Some(&[1, PLACES]) {
        let found = format!("{output:?}");
        return Err(OnnxError::Fact { what: "output", found, expected: PLACES });
    }
    let network = Network { plan: model.into_runnable().map_err(unreadable)? };
    // What cannot run is found here.
    network.run(&[0.0; LENGTH]).map_err(unreadable)?;
    Ok(network)
}

impl Network {
    fn run(&self, numbers: &[f32; LENGTH]) -> TractResult<[f64; PLACES]> {
        let input = Tensor::from_shape(&[1, LENGTH], numbers)?;
        let outputs = self.plan.run(tvec!(input.into()))?;
        let output = outputs.first().ok_or_else(|| TractError::msg("no output"))?;
        let mut scores = [f64::NAN; PLACES];
        let view = output.to_plain_array_view::<f32>()?;
        for (score, given) in scores.iter_mut().zip(view.iter()) {
            *score = f64::from(*given);
        }
        Ok(scores)
    }
}

impl Score for Network {
    fn scores(&self, numbers: &[f32; LENGTH]) -> Option<[f64; PLACES]> {
        self.run(numbers).ok()
    }
}

#[cfg(test)]
mod tests;
