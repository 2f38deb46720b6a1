//! Parameters of a policy: declared with type, default and range; read from text.

use std::fmt;

use quipu_base::Duration;

use super::error::{BuildError, SpecError};
use super::file::PolicyFile;
use super::nearest;

/// A parameter of a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name in text, such as `beta`.
    pub name: &'static str,
    /// What values it takes.
    pub domain: Domain,
    /// Its value if none is given.
    pub default: Value,
    /// One line: what it does, its unit.
    pub about: &'static str,
}

/// What values a parameter takes. Ranges include their ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Domain {
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Integer {
        /// Least.
        min: u64,
        /// Greatest.
        max: u64,
    },
    /// A number, with a point if need be.
    Number {
        /// Least.
        min: f64,
        /// Greatest.
        max: f64,
    },
    /// One of some names.
    Choice(&'static [&'static str]),
    /// A length of time with its unit: `ns`, `us`, `ms` or `s`.
    Time {
        /// Least.
        min: Duration,
        /// Greatest.
        max: Duration,
    },
    /// A file, by its name.
    File,
}

/// A value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `true` or `false`.
    Flag(bool),
    /// A whole number.
    Integer(u64),
    /// A number; finite.
    Number(f64),
    /// One of the names that the parameter's domain lists.
    Choice(&'static str),
    /// A length of time.
    Time(Duration),
    /// A file, which was read; `None` where none is named, which is only a default.
    File(Option<PolicyFile>),
}

impl Param {
    /// A switch.
    pub const fn flag(name: &'static str, default: bool, about: &'static str) -> Self {
        Param { name, domain: Domain::Flag, default: Value::Flag(default), about }
    }

    /// A whole number in `min..=max`.
    pub const fn integer(
        name: &'static str,
        default: u64,
        (min, max): (u64, u64),
        about: &'static str,
    ) -> Self {
        Param {
            name,
            domain: Domain::Integer { min, max },
            default: Value::Integer(default),
            about,
        }
    }

    /// A number in `min..=max`.
    pub const fn number(
        name: &'static str,
        default: f64,
        (min, max): (f64, f64),
        about: &'static str,
    ) -> Self {
        Param { name, domain: Domain::Number { min, max }, default: Value::Number(default), about }
    }

    /// One of `names`; the default is the first.
    ///
    /// # Panics
    /// If there is no name: a declaration is wrong, whatever the input.
    pub const fn choice(
        name: &'static str,
        names: &'static [&'static str],
        about: &'static str,
    ) -> Self {
        Param { name, domain: Domain::Choice(names), default: Value::Choice(names[0]), about }
    }

    /// A length of time in `min..=max`.
    pub const fn time(
        name: &'static str,
        default: Duration,
        (min, max): (Duration, Duration),
        about: &'static str,
    ) -> Self {
        Param { name, domain: Domain::Time { min, max }, default: Value::Time(default), about }
    }

    /// A file, which has to be named.
    pub const fn file(name: &'static str, about: &'static str) -> Self {
        Param { name, domain: Domain::File, default: Value::File(None), about }
    }
}

impl Domain {
    /// Reads a value; `None` if the text is none or lies outside, or names no file that can be read.
    pub fn read(&self, text: &str) -> Option<Value> {
        let value = match *self {
            Domain::Flag => Value::Flag(text.parse().ok()?),
            Domain::Integer { .. } => Value::Integer(text.parse().ok()?),
            Domain::Number { .. } => Value::Number(text.parse().ok()?),
            Domain::Choice(names) => {
                Value::Choice(names.iter().copied().find(|&name| name == text)?)
            }
            Domain::Time { .. } => Value::Time(read_time(text)?),
            Domain::File => Value::File(Some(PolicyFile::read(text).ok()?)),
        };
        self.holds(&value).then_some(value)
    }

    /// True if the value is of this type and in range.
    pub fn holds(&self, value: &Value) -> bool {
        match (self, value) {
            (Domain::Flag, Value::Flag(_)) | (Domain::File, Value::File(_)) => true,
            (Domain::Integer { min, max }, Value::Integer(given)) => (min..=max).contains(&given),
            // A NaN is in no range.
            (Domain::Number { min, max }, Value::Number(given)) => (min..=max).contains(&given),
            (Domain::Choice(names), Value::Choice(given)) => names.contains(given),
            (Domain::Time { min, max }, Value::Time(given)) => (min..=max).contains(&given),
            _ => false,
        }
    }
}

/// Every parameter of one policy with its value, defaults filled in, in order of declaration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    entries: Vec<Assigned>,
}

#[derive(Clone, Debug, PartialEq)]
struct Assigned {
    name: &'static str,
    value: Value,
    default: Value,
}

impl Values {
    /// Every parameter at its default.
    pub fn defaults(params: &[Param]) -> Self {
        let entries = params
            .iter()
            .map(|param| Assigned {
                name: param.name,
                value: param.default.clone(),
                default: param.default.clone(),
            })
            .collect();
        Values { entries }
    }

    /// Reads `name=value,name=value`; what is not given has its default. `policy` is for errors.
    ///
    /// # Errors
    /// An unknown or repeated name, a value of another type or out of range, a file that cannot be read.
    pub fn read(policy: &str, params: &[Param], text: &str) -> Result<Self, SpecError> {
        let mut values = Values::defaults(params);
        let mut given: Vec<&str> = Vec::new();
        for item in text.split(',').map(str::trim) {
            let Some((name, value)) = item.split_once('=') else {
                return Err(SpecError::Syntax { text: item.into(), expected: "parameter=value" });
            };
            let (name, value) = (name.trim(), value.trim());
            let Some(param) = params.iter().find(|param| param.name == name) else {
                return Err(SpecError::UnknownParam {
                    policy: policy.into(),
                    param: name.into(),
                    hint: nearest(name, params.iter().map(|param| param.name)),
                });
            };
            if given.contains(&name) {
                return Err(SpecError::Repeated { what: format!("{policy}: {name}") });
            }
            given.push(name);
            let read = match param.domain {
                Domain::File => match PolicyFile::read(value) {
                    Ok(file) => Ok(Value::File(Some(file))),
                    Err(error) => Err(error.to_string()),
                },
                domain => domain.read(value).ok_or_else(|| domain.to_string()),
            };
            let read = read.map_err(|expected| SpecError::BadValue {
                policy: policy.into(),
                param: name.into(),
                value: value.into(),
                expected,
            })?;
            values.set(param.name, read);
        }
        Ok(values)
    }

    fn set(&mut self, name: &str, value: Value) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.name == name) {
            entry.value = value;
        }
    }

    /// Every parameter with its value, in order of declaration.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.entries.iter().map(|entry| (entry.name, &entry.value))
    }

    /// The parameters that differ from their defaults, in order of declaration.
    pub fn changed(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.entries
            .iter()
            .filter(|entry| entry.value != entry.default)
            .map(|entry| (entry.name, &entry.value))
    }

    /// The files among them.
    pub fn files(&self) -> impl Iterator<Item = &PolicyFile> {
        self.entries.iter().filter_map(|entry| match &entry.value {
            Value::File(file) => file.as_ref(),
            _ => None,
        })
    }

    /// The first parameter whose file is not named.
    pub(super) fn unnamed_file(&self) -> Option<&'static str> {
        let unnamed = self.entries.iter().find(|entry| entry.value == Value::File(None));
        unnamed.map(|entry| entry.name)
    }

    /// A switch.
    ///
    /// # Errors
    /// This and the other readers fail if the policy declared no such parameter of that type.
    pub fn flag(&self, name: &'static str) -> Result<bool, BuildError> {
        match self.value(name) {
            Some(Value::Flag(value)) => Ok(*value),
            _ => Err(BuildError::Undeclared { param: name }),
        }
    }

    /// A whole number.
    ///
    /// # Errors
    /// See [`Values::flag`].
    pub fn integer(&self, name: &'static str) -> Result<u64, BuildError> {
        match self.value(name) {
            Some(Value::Integer(value)) => Ok(*value),
            _ => Err(BuildError::Undeclared { param: name }),
        }
    }

    /// A number.
    ///
    /// # Errors
    /// See [`Values::flag`].
    pub fn number(&self, name: &'static str) -> Result<f64, BuildError> {
        match self.value(name) {
            Some(Value::Number(value)) => Ok(*value),
            _ => Err(BuildError::Undeclared { param: name }),
        }
    }

    /// One of the names that the parameter lists.
    ///
    /// # Errors
    /// See [`Values::flag`].
    pub fn choice(&self, name: &'static str) -> Result<&'static str, BuildError> {
        match self.value(name) {
            Some(Value::Choice(value)) => Ok(*value),
            _ => Err(BuildError::Undeclared { param: name }),
        }
    }

    /// A length of time.
    ///
    /// # Errors
    /// See [`Values::flag`].
    pub fn time(&self, name: &'static str) -> Result<Duration, BuildError> {
        match self.value(name) {
            Some(Value::Time(value)) => Ok(*value),
            _ => Err(BuildError::Undeclared { param: name }),
        }
    }

    /// A file, as it was when the policy's text was read.
    ///
    /// # Errors
    /// See [`Values::flag`].
    pub fn file(&self, name: &'static str) -> Result<&PolicyFile, BuildError> {
        match self.value(name) {
            Some(Value::File(Some(file))) => Ok(file),
            _ => Err(BuildError::Undeclared { param: name }),
        }
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.entries.iter().find(|entry| entry.name == name).map(|entry| &entry.value)
    }
}

const UNITS: [(&str, u64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

fn read_time(text: &str) -> Option<Duration> {
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(split);
    let nanos = UNITS.iter().find(|(name, _)| *name == unit)?.1;
    if let Ok(whole) = number.parse::<u64>() {
        return Some(Duration::from_nanos(whole.checked_mul(nanos)?));
    }
    let number: f64 = number.parse().ok()?;
    let seconds = number * nanos as f64 / 1e9;
    (0.0..1e9).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

impl fmt::Display for Value {
    /// As it is read again: `0.25`, `true`, `100ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Flag(value) => write!(f, "{value}"),
            Value::Integer(value) => write!(f, "{value}"),
            Value::Number(value) => write!(f, "{value}"),
            Value::Choice(value) => f.write_str(value),
            Value::Time(value) => {
                let nanos = value.as_nanos();
                let unit = UNITS.iter().rev().find(|(_, unit)| nanos % unit == 0);
                let (name, unit) = unit.copied().unwrap_or(UNITS[0]);
                write!(f, "{}{name}", nanos / unit)
            }
            Value::File(Some(file)) => write!(f, "{file}"),
            Value::File(None) => Ok(()),
        }
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Domain::Flag => f.write_str("true or false"),
            Domain::Integer { min, max: u64::MAX } => write!(f, "a whole number from {min}"),
            Domain::Integer { min, max } => write!(f, "a whole number in {min}..={max}"),
            Domain::Number { min, max } => write!(f, "a number in {min}..={max}"),
            Domain::Choice(names) => write!(f, "one of {}", names.join(", ")),
            Domain::Time { min, max } => {
                write!(f, "a time in {}..={}", Value::Time(min), Value::Time(max))
            }
            Domain::File => f.write_str("a file"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params() -> Vec<Param> {
        vec![
            Param::number("beta", 0.25, (0.0, 10.0), "hysteresis"),
            Param::choice("mode", &["fluid", "quantum"], "which form"),
            Param::time(
                "latency",
                Duration::from_millis(100),
                (Duration::ZERO, Duration::from_secs(60)),
                "from writing to arrival",
            ),
        ]
    }

    #[test]
    fn what_is_not_given_has_its_default() {
        let values = Values::read("p", &params(), "mode=quantum").unwrap();
        assert_eq!(values.number("beta"), Ok(0.25));
        assert_eq!(values.choice("mode"), Ok("quantum"));
        assert_eq!(values.time("latency"), Ok(Duration::from_millis(100)));
        assert_eq!(values.changed().count(), 1);
    }

    #[test]
    fn a_name_or_type_not_declared_is_an_error_of_the_policy() {
        let values = Values::defaults(&params());
        assert_eq!(values.flag("beta"), Err(BuildError::Undeclared { param: "beta" }));
        assert_eq!(values.integer("gamma"), Err(BuildError::Undeclared { param: "gamma" }));
    }

    #[test]
    fn values_out_of_range_name_the_range() {
        let error = Values::read("ecf", &params(), "beta=11").unwrap_err();
        assert_eq!(error.to_string(), "ecf: beta=11: expected a number in 0..=10");
        for bad in ["beta=NaN", "beta=inf", "latency=5", "latency=2min", "latency=-1s", "mode="] {
            assert!(Values::read("ecf", &params(), bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_unknown_parameter_names_the_nearest() {
        let error = Values::read("ecf", &params(), "bata=1").unwrap_err();
        assert_eq!(
            error.to_string(),
            "ecf has no parameter `bata`; did you mean `beta`? It has: beta, mode, latency"
        );
    }

    #[test]
    fn times_print_in_the_largest_unit_that_is_exact() {
        for text in ["100ms", "2s", "1500us", "7ns", "0s"] {
            assert_eq!(Value::Time(read_time(text).unwrap()).to_string(), text);
        }
        assert_eq!(read_time("1.5ms"), Some(Duration::from_micros(1500)));
    }
}
