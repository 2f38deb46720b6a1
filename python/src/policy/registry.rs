//! Classes of Python by name, beside the policies that come with the program.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use quipu_base::Duration;
use quipu_lab::plan::Plan;
use quipu_lab::policies::PolicyRow;
use quipu_lab::program::Program;
use quipu_policy::registry::{BuildError, Confidence, Domain, Param, Value, Values};
use quipu_policy::{
    BuildContext, Built, Controller, ControllerFactory, Entry, Layer, PolicySpec, Registry,
};
use xxhash_rust::xxh3::{xxh3_128, xxh3_128_with_seed};

use super::ack::PythonAck;
use super::callee::Callee;
use super::controller::PythonController;
use super::joint::PythonJoint;
use super::path::PythonPath;
use super::random::Random;
use super::session::Session;
use super::stream::PythonStream;
use crate::error;

/// The policies that can be named, and what those of Python are made of.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) registry: Registry,
    /// Hashes of the sources of all classes, by layer and name.
    code: BTreeMap<(&'static str, &'static str), u128>,
}

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(|| Mutex::new(Known::of_program()));

/// What is known now.
pub(crate) fn current() -> Known {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

impl Known {
    /// What comes with the program.
    fn of_program() -> Known {
        Known { registry: quipu_learned::registry(), code: BTreeMap::new() }
    }

    /// The program that makes runs with these policies. Kept results are used again as long as neither its sources
    /// nor those of the classes change.
    pub(crate) fn program(&self) -> PyResult<Arc<Program>> {
        let program = quipu_cli::program(&quipu_learned::registry()).map_err(error::run)?;
        let frame = program.frame().unwrap_or_default();
        let code = xxh3_128_with_seed(self.classes().as_bytes(), frame as u64);
        Ok(Arc::new(program.with_executable(code)))
    }

    /// The classes of Python, and the hashes of their sources.
    fn classes(&self) -> String {
        let classes = self.code.iter();
        classes.map(|((layer, name), code)| format!("{layer} {name} {code:x}\n")).collect()
    }
}

/// Forgets all classes: what can be named is what comes with the program.
#[pyfunction]
pub(crate) fn forget_policies() {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    *known = Known::of_program();
}

/// What this package amounts to, and what the classes that are registered do, as texts: where both are the same, so are
/// runs.
#[pyfunction]
pub(crate) fn fingerprint() -> PyResult<(String, String)> {
    let known = current();
    let program = quipu_cli::program(&quipu_learned::registry()).map_err(error::run)?;
    let frame = program.frame().unwrap_or_default();
    Ok((format!("{frame:032x}"), format!("{:032x}", xxh3_128(known.classes().as_bytes()))))
}

/// Whether runs of `plan` ask policies of Python.
pub(crate) fn uses_python(plan: &Plan) -> bool {
    let specs = plan.rows().flat_map(PolicyRow::specs);
    !specs.flat_map(PolicySpec::parts).all(|part| part.is_builtin())
}

/// Does `run` of `plan`, holding the interpreter all the while if it is needed for every packet: not where other processes
/// make the runs.
pub(crate) fn attached<T>(plan: &Plan, run: impl FnOnce() -> T) -> T {
    if plan.maker.is_none() && uses_python(plan) { Python::attach(|_| run()) } else { run() }
}

/// A parameter as Python describes it: name, kind, default, least, greatest, choices, what it does.
type Described<'py> = (
    String,
    String,
    Bound<'py, PyAny>,
    Option<Bound<'py, PyAny>>,
    Option<Bound<'py, PyAny>>,
    Vec<String>,
    String,
);

/// Lives as long as the process: policies are few, and named by texts that do.
fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// The layer of that name.
fn layer_named(name: &str) -> PyResult<Layer> {
    let layers = [Layer::Stream, Layer::Path, Layer::Joint, Layer::Ack, Layer::Congestion];
    layers.into_iter().find(|layer| layer.name() == name).ok_or_else(|| {
        let known: Vec<&str> = layers.iter().map(|layer| layer.name()).collect();
        error::scenario(format!("layer: {name}: expected one of {}", known.join(", ")))
    })
}

fn param(described: Described<'_>) -> PyResult<Param> {
    let (name, kind, default, least, greatest, choices, about) = described;
    let (name, about) = (leak(name), leak(about));
    let bound = |value: Option<Bound<'_, PyAny>>, otherwise: f64| {
        value.map_or(Ok(otherwise), |value| value.extract::<f64>())
    };
    Ok(match kind.as_str() {
        "flag" => Param::flag(name, default.extract()?, about),
        "integer" => {
            let range = (bound(least, 0.0)? as u64, bound(greatest, u64::MAX as f64)? as u64);
            Param::integer(name, default.extract()?, range, about)
        }
        "number" => {
            let range = (bound(least, f64::MIN)?, bound(greatest, f64::MAX)?);
            Param::number(name, default.extract()?, range, about)
        }
        "time" => {
            let time = |seconds: f64| Duration::from_secs_f64(seconds);
            let range = (time(bound(least, 0.0)?), time(bound(greatest, 1e6)?));
            Param::time(name, time(default.extract()?), range, about)
        }
        _ => {
            let default = default.extract::<String>()?;
            let names: Vec<&'static str> = choices.into_iter().map(leak).collect();
            let names: &'static [&'static str] = Box::leak(names.into_boxed_slice());
            let default = names.iter().find(|name| **name == default).copied();
            Param {
                name,
                domain: Domain::Choice(names),
                default: Value::Choice(default.unwrap_or_default()),
                about,
            }
        }
    })
}

/// Makes `class` a policy of `layer` that can be chosen by `name`, in place of an earlier class of that name.
#[pyfunction]
#[pyo3(signature = (class, *, layer, name, about, formula, source, params, code))]
#[expect(clippy::too_many_arguments, reason = "each is named where it is called")]
pub(crate) fn register(
    class: Bound<'_, PyType>,
    layer: &str,
    name: String,
    about: String,
    formula: String,
    source: String,
    params: Vec<Described<'_>>,
    code: &str,
) -> PyResult<()> {
    let layer = layer_named(layer)?;
    let name = leak(name);
    let params = params.into_iter().map(param).collect::<PyResult<Vec<Param>>>()?;
    let class = class.unbind();
    let build = move |values: &Values, context: &mut BuildContext| {
        let session = Session::current();
        Python::attach(|py| {
            built(py, class.bind(py), (layer, name), values, context, &session).map_err(|error| {
                let reason = error.to_string();
                session.fail(error);
                BuildError::Failed { reason }
            })
        })
    };
    let entry = Entry {
        name,
        layer,
        about: leak(about),
        formula: leak(formula),
        params,
        source: leak(source),
        confidence: Confidence::High,
        build: Box::leak(Box::new(build)),
    };
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.registry.put(entry).map_err(error::scenario)?;
    known.code.insert((layer.name(), name), xxh3_128(code.as_bytes()));
    Ok(())
}

/// An object of `class`, whose constructor gets the values of its parameters by name, and finds `random` and
/// `attributes` in place.
fn object<'py>(
    class: &Bound<'py, PyType>,
    values: &Bound<'py, PyDict>,
    attributes: &[(&str, Bound<'py, PyAny>)],
) -> PyResult<Bound<'py, PyAny>> {
    let object = class.call_method1("__new__", (class,))?;
    for (name, value) in attributes {
        object.setattr(*name, value)?;
    }
    object.call_method("__init__", (), Some(values))?;
    Ok(object)
}

/// The values of parameters by name.
fn named<'py>(py: Python<'py>, values: &Values) -> PyResult<Bound<'py, PyDict>> {
    let named = PyDict::new(py);
    for (name, value) in values.iter() {
        match value {
            Value::Flag(value) => named.set_item(name, value)?,
            Value::Integer(value) => named.set_item(name, value)?,
            Value::Number(value) => named.set_item(name, value)?,
            Value::Choice(value) => named.set_item(name, value)?,
            Value::Time(value) => {
                named.set_item(name, std::time::Duration::from_nanos(value.as_nanos()))?;
            }
            Value::File(file) => named.set_item(name, file.as_ref().map(|file| file.name()))?,
        }
    }
    Ok(named)
}

fn built(
    py: Python<'_>,
    class: &Bound<'_, PyType>,
    (layer, name): (Layer, &'static str),
    values: &Values,
    context: &mut BuildContext,
    session: &Arc<Session>,
) -> PyResult<Built> {
    let values = named(py, values)?;
    let random = || Bound::new(py, Random(context.random(name))).map(Bound::into_any);
    let callee = || {
        let object = object(class, &values, &[("random", random()?)])?;
        Callee::new(object, Arc::clone(session))
    };
    Ok(match layer {
        Layer::Stream => Built::stream(PythonStream::new(py, callee()?)?),
        Layer::Path => Built::path(PythonPath::new(py, callee()?)?),
        Layer::Joint => Built::joint(PythonJoint::new(py, callee()?)?),
        Layer::Ack => Built::ack(PythonAck::new(py, callee()?)?),
        _ => Built::controller(controllers(class, values, context, session)?),
    })
}

/// Makes a controller of `class` for each path. Should that fail, the path has the default one until the run ends.
fn controllers(
    class: &Bound<'_, PyType>,
    values: Bound<'_, PyDict>,
    context: &BuildContext,
    session: &Arc<Session>,
) -> PyResult<ControllerFactory> {
    let window = u64::from(context.initial_window);
    let (class, values, session) = (class.clone().unbind(), values.unbind(), Arc::clone(session));
    let spec = PolicySpec::parse(&Registry::builtin(), "").map_err(error::run)?;
    let otherwise = spec.build(context).map_err(error::run)?.controllers;
    Ok(ControllerFactory::new(move |path, datagram| -> Box<dyn Controller> {
        let made = Python::attach(|py| {
            let number = |value: u64| value.into_pyobject(py).map(Bound::into_any);
            let attributes = [
                ("path", number(path.id.0.into())?),
                ("datagram_bytes", number(datagram.0)?),
                ("initial_window_bytes", number(datagram.0 * window)?),
            ];
            let object = object(class.bind(py), values.bind(py), &attributes)?;
            PythonController::new(object, Arc::clone(&session))
        });
        match made {
            Ok(controller) => Box::new(controller),
            Err(error) => {
                session.fail(error);
                otherwise.make(path, datagram)
            }
        }
    }))
}
