//! Stacks that pages are loaded with.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::choice::choices;
use super::error::ScenarioError;
use super::form::text::read;
use super::form::{Kind, Names, Numbers, Text, field_types};

choices! {
    /// What carries a page: HTTP and the transport below it.
    StackName, "stack" {
        /// HTTP over Quipu's QUIC.
        #[default]
        Quipu = "quipu",
        /// HTTP/2 over the kernel's TCP, over one path.
        TcpH2 = "tcp-h2",
        /// HTTP/1.1 over connections of the kernel's TCP, over one path.
        TcpH1 = "tcp-h1",
        /// HTTP/2 over the kernel's Multipath TCP, over all paths.
        MptcpH2 = "mptcp-h2",
    }
}

choices! {
    /// A congestion control of the kernel's TCP.
    TcpCongestion, "congestion control of the kernel" {
        /// RFC 9438, the default of Linux.
        #[default]
        Cubic = "cubic",
        /// RFC 5681.
        Reno = "reno",
        /// BBR as the kernel has it.
        Bbr = "bbr",
    }
}

/// A stack of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelStack {
    /// What it is; never [`StackName::Quipu`].
    name: StackName,
    /// The congestion control of both ends.
    pub congestion: TcpCongestion,
}

impl KernelStack {
    /// What it is called, without its congestion control.
    pub fn name(&self) -> StackName {
        self.name
    }

    /// Whether it uses all paths of a network; others use one.
    pub fn is_multipath(&self) -> bool {
        self.name == StackName::MptcpH2
    }

    /// Whether it speaks HTTP/1.1; others speak HTTP/2.
    pub fn is_http1(&self) -> bool {
        self.name == StackName::TcpH1
    }
}

/// The stack of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stack {
    /// HTTP over Quipu's QUIC, with its policies.
    #[default]
    Quipu,
    /// The kernel's.
    Kernel(KernelStack),
}

impl Stack {
    /// The kernel's, if it is one.
    pub fn kernel(self) -> Option<KernelStack> {
        match self {
            Stack::Quipu => None,
            Stack::Kernel(stack) => Some(stack),
        }
    }
}

/// The parameter of a stack of the kernel.
const CONGESTION: &str = "congestion=";

impl fmt::Display for Stack {
    /// As in a scenario: the default congestion control is not told.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stack::Quipu => write!(f, "{}", StackName::Quipu),
            Stack::Kernel(KernelStack { name, congestion }) => {
                write!(f, "{name}")?;
                match congestion {
                    TcpCongestion::Cubic => Ok(()),
                    other => write!(f, ":{CONGESTION}{other}"),
                }
            }
        }
    }
}

impl FromStr for Stack {
    type Err = ScenarioError;

    fn from_str(text: &str) -> Result<Self, ScenarioError> {
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (text, None),
        };
        let name: StackName = name.parse()?;
        let wrong = |expected: &str| ScenarioError::invalid("stack", text, expected);
        if name == StackName::Quipu {
            return match parameter {
                None => Ok(Stack::Quipu),
                Some(_) => Err(wrong("quipu without parameters; policies.congestion is for it")),
            };
        }
        let congestion = match parameter {
            None => TcpCongestion::default(),
            Some(parameter) => {
                let named = parameter.strip_prefix(CONGESTION);
                named.ok_or_else(|| wrong("a parameter as in tcp-h2:congestion=reno"))?.parse()?
            }
        };
        Ok(Stack::Kernel(KernelStack { name, congestion }))
    }
}

/// One stack, or several: each is rows of a comparison then. In text separated by commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stacks(Vec<Stack>);

impl Stacks {
    /// In the order in which they were named; at least one.
    pub fn iter(&self) -> impl Iterator<Item = Stack> {
        self.0.iter().copied()
    }

    /// The first of the kernel, if there is one.
    pub fn first_kernel(&self) -> Option<Stack> {
        self.iter().find(|stack| *stack != Stack::Quipu)
    }
}

impl Default for Stacks {
    fn default() -> Self {
        Stacks(vec![Stack::default()])
    }
}

impl fmt::Display for Stacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, stack) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{stack}")?;
        }
        Ok(())
    }
}

impl FromStr for Stacks {
    type Err = ScenarioError;

    fn from_str(text: &str) -> Result<Self, ScenarioError> {
        let mut stacks = Vec::new();
        for part in text.split(',') {
            let stack: Stack = part.trim().parse()?;
            if stacks.contains(&stack) {
                return Err(ScenarioError::invalid("stack", text, "different stacks"));
            }
            stacks.push(stack);
        }
        Ok(Stacks(stacks))
    }
}

impl Serialize for Stacks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Stacks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// All stacks, those of the kernel also with each congestion control.
fn names() -> Vec<String> {
    let kernel = StackName::NAMES.iter().filter(|name| **name != "quipu");
    let with = |name: &&str| {
        let name = (*name).to_owned();
        TcpCongestion::NAMES.iter().map(move |by| format!("{name}:{CONGESTION}{by}"))
    };
    let plain = StackName::NAMES.iter().map(|&name| name.to_owned());
    plain.chain(kernel.flat_map(with)).collect()
}

macro_rules! stack {
    () => {
        "(quipu|(tcp-h2|tcp-h1|mptcp-h2)(:congestion=(cubic|reno|bbr))?)"
    };
}

/// Stacks.
static STACKS: Text = Text {
    name: "stacks",
    expected: "quipu, tcp-h2, tcp-h1 or mptcp-h2, several separated by commas; those of the kernel \
               may name their congestion control, as in tcp-h2:congestion=reno",
    pattern: concat!("^ *", stack!(), "( *, *", stack!(), ")* *$"),
    accepts: read::<Stacks>,
    numbers: Numbers::None,
    names: Names::Usual(names),
    examples: &["quipu", "quipu,tcp-h2,mptcp-h2", "tcp-h2:congestion=reno,tcp-h2:congestion=bbr"],
    refused: &["tcp", "tcp-h2:reno", "quipu:congestion=bbr", ""],
};

field_types! {
    Stacks: Kind::Text(&STACKS),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_a_list_of_names_with_a_congestion_control_without_repetitions() {
        let text = "quipu, tcp-h2, tcp-h2:congestion=bbr,mptcp-h2:congestion=cubic";
        let stacks: Stacks = text.parse().unwrap();
        assert_eq!(stacks.to_string(), "quipu,tcp-h2,tcp-h2:congestion=bbr,mptcp-h2");
        let kernel: Vec<KernelStack> = stacks.iter().filter_map(Stack::kernel).collect();
        let told = kernel.iter().map(|it| (it.name().to_string(), it.congestion.to_string()));
        let expected = [("tcp-h2", "cubic"), ("tcp-h2", "bbr"), ("mptcp-h2", "cubic")];
        assert!(told.eq(expected.map(|(name, by)| (name.to_owned(), by.to_owned()))));
        assert_eq!(kernel.iter().filter(|stack| stack.is_multipath()).count(), 1);
        for (text, told) in [
            ("tcp-h3", "did you mean `tcp-h2`?"),
            ("tcp-h2:congestion=cubc", "did you mean `cubic`?"),
            ("tcp-h2:cubic", "tcp-h2:congestion=reno"),
            ("tcp-h2,tcp-h2:congestion=cubic", "different stacks"),
            ("quipu:congestion=bbr", "policies.congestion"),
            ("", "there are: quipu"),
        ] {
            let error = text.parse::<Stacks>().unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
