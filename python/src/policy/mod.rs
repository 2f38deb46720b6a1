//! Classes of Python as policies: of streams, of paths, of both, of acknowledgements, and congestion controllers.
//!
//! [`registry`] makes policies of them; [`view`] is what they may read, [`views`] when, [`answer`] what they may say, [`event`] what they
//! are told, and [`callee`] how they are called. [`session`] has the exceptions.

mod ack;
mod answer;
mod callee;
mod controller;
mod event;
mod joint;
mod path;
mod random;
pub(crate) mod ready;
pub(crate) mod registry;
pub(crate) mod session;
mod shown;
mod stream;
mod view;
mod views;

use pyo3::prelude::*;

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<answer::FromBack>()?;
    module.add_class::<answer::Later>()?;
    module.add_class::<answer::Wait>()?;
    module.add_class::<controller::CongestionEvent>()?;
    module.add_class::<event::PacketObject>()?;
    module.add_class::<joint::Send>()?;
    module.add_class::<random::Random>()?;
    module.add_class::<view::ParcelObject>()?;
    module.add_class::<view::PathObject>()?;
    module.add_class::<view::StreamObject>()?;
    module.add_class::<views::ViewObject>()?;
    module.add_function(wrap_pyfunction!(registry::fingerprint, module)?)?;
    module.add_function(wrap_pyfunction!(registry::forget_policies, module)?)?;
    module.add_function(wrap_pyfunction!(registry::register, module)?)
}
