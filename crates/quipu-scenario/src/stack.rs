//! Stacks that pages are loaded with.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::choice::{HttpVersion, choices};
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
        /// HTTP/3 over the published library quinn, over one path.
        QuinnH3 = "quinn-h3",
        /// HTTP/3 over the published library noq, over all paths.
        NoqH3 = "noq-h3",
        /// HTTP/3 between Chromium and a server of Quipu, over one path.
        ChromiumH3 = "chromium-h3",
        /// HTTP/2 between Chromium and the kernel's TCP, over one path.
        ChromiumH2 = "chromium-h2",
        /// HTTP/1.1 between Chromium and the kernel's TCP, over one path.
        ChromiumH1 = "chromium-h1",
        /// HTTP/2 between Chromium and the kernel's Multipath TCP, over all paths.
        ChromiumMptcpH2 = "chromium-mptcp-h2",
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

choices! {
    /// A congestion control of a published QUIC library.
    QuicCongestion, "congestion control of a QUIC library" {
        /// RFC 9438, the default of quinn and noq.
        #[default]
        Cubic = "cubic",
        /// RFC 9002.
        Newreno = "newreno",
        /// BBR as the library has it: its first version in quinn, its third in noq.
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

/// A stack of a published QUIC library, which a program may bring; the `quipu` command alone has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignChoice {
    /// What it is: [`StackName::QuinnH3`] or [`StackName::NoqH3`].
    name: StackName,
    /// The congestion control of both ends.
    pub congestion: QuicCongestion,
}

impl ForeignChoice {
    /// What it is called, without its congestion control.
    pub fn name(&self) -> StackName {
        self.name
    }

    /// Whether it uses all paths of a network; others use one.
    pub fn is_multipath(&self) -> bool {
        self.name == StackName::NoqH3
    }
}

/// Chromium, which decides itself what to ask for and when: HTTP/3 with a server of Quipu, or a stack of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrowserStack {
    /// What carries it, unless it is HTTP/3.
    pub kernel: Option<KernelStack>,
}

impl BrowserStack {
    /// What it is called, without its congestion control.
    pub fn name(&self) -> StackName {
        match self.kernel {
            None => StackName::ChromiumH3,
            Some(stack) if stack.is_multipath() => StackName::ChromiumMptcpH2,
            Some(stack) if stack.is_http1() => StackName::ChromiumH1,
            Some(_) => StackName::ChromiumH2,
        }
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
    /// That of a published QUIC library.
    Foreign(ForeignChoice),
    /// Chromium in place of the model of a browser.
    Browser(BrowserStack),
}

impl Stack {
    /// The kernel's, if it is one, also below a browser.
    pub fn kernel(self) -> Option<KernelStack> {
        match self {
            Stack::Quipu | Stack::Foreign(_) => None,
            Stack::Kernel(stack) => Some(stack),
            Stack::Browser(stack) => stack.kernel,
        }
    }

    /// How stacks other than Quipu's, for which a scenario says it, carry HTTP: over QUIC's streams, or over one byte stream
    /// of the kernel.
    pub fn http(self) -> HttpVersion {
        match self.kernel() {
            None => HttpVersion::H3,
            Some(_) => HttpVersion::H2Tcp,
        }
    }

    /// That of a published QUIC library, if it is one.
    pub fn foreign(self) -> Option<ForeignChoice> {
        match self {
            Stack::Quipu | Stack::Kernel(_) | Stack::Browser(_) => None,
            Stack::Foreign(stack) => Some(stack),
        }
    }

    /// What it is called, without its congestion control.
    pub fn name(self) -> StackName {
        match self {
            Stack::Quipu => StackName::Quipu,
            Stack::Kernel(stack) => stack.name,
            Stack::Foreign(stack) => stack.name,
            Stack::Browser(stack) => stack.name(),
        }
    }

    /// The name of its congestion control, if it has a choice of its own.
    pub fn congestion(self) -> Option<String> {
        match self {
            Stack::Quipu => None,
            Stack::Kernel(stack) => Some(stack.congestion.to_string()),
            Stack::Foreign(stack) => Some(stack.congestion.to_string()),
            Stack::Browser(stack) => stack.kernel.map(|stack| stack.congestion.to_string()),
        }
    }

    /// Whether it uses all paths of a network; others use one.
    pub fn is_multipath(self) -> bool {
        match self {
            Stack::Quipu => true,
            Stack::Kernel(stack) => stack.is_multipath(),
            Stack::Foreign(stack) => stack.is_multipath(),
            Stack::Browser(stack) => stack.kernel.is_some_and(|stack| stack.is_multipath()),
        }
    }
}

/// The parameter of a stack other than Quipu's.
const CONGESTION: &str = "congestion=";

impl fmt::Display for Stack {
    /// As in a scenario: the default congestion control is not told.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name())?;
        match self.congestion() {
            Some(other) if other != TcpCongestion::default().to_string() => {
                write!(f, ":{CONGESTION}{other}")
            }
            _ => Ok(()),
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
        match (name, parameter) {
            (StackName::Quipu, None) => return Ok(Stack::Quipu),
            (StackName::Quipu, Some(_)) => {
                return Err(wrong("quipu without parameters; policies.congestion is for it"));
            }
            (StackName::ChromiumH3, None) => {
                return Ok(Stack::Browser(BrowserStack { kernel: None }));
            }
            (StackName::ChromiumH3, Some(_)) => {
                return Err(wrong("chromium-h3 without parameters; its server has cubic"));
            }
            _ => {}
        }
        let named = match parameter {
            None => None,
            Some(parameter) => {
                let named = parameter.strip_prefix(CONGESTION);
                Some(named.ok_or_else(|| wrong("a parameter as in tcp-h2:congestion=reno"))?)
            }
        };
        if is_foreign(name) {
            let congestion = named.map(str::parse).transpose()?.unwrap_or_default();
            return Ok(Stack::Foreign(ForeignChoice { name, congestion }));
        }
        let congestion = named.map(str::parse).transpose()?.unwrap_or_default();
        let below = below_browser(name);
        let kernel = KernelStack { name: below.unwrap_or(name), congestion };
        Ok(match below {
            None => Stack::Kernel(kernel),
            Some(_) => Stack::Browser(BrowserStack { kernel: Some(kernel) }),
        })
    }
}

/// The stack of the kernel that Chromium uses in the stack of that name, if it is one.
fn below_browser(name: StackName) -> Option<StackName> {
    match name {
        StackName::ChromiumH2 => Some(StackName::TcpH2),
        StackName::ChromiumH1 => Some(StackName::TcpH1),
        StackName::ChromiumMptcpH2 => Some(StackName::MptcpH2),
        _ => None,
    }
}

/// Whether a published QUIC library carries the stack of that name.
fn is_foreign(name: StackName) -> bool {
    matches!(name, StackName::QuinnH3 | StackName::NoqH3)
}

/// One stack, or several: each is rows of a comparison then. In text separated by commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stacks(Vec<Stack>);

impl Stacks {
    /// In the order in which they were named; at least one.
    pub fn iter(&self) -> impl Iterator<Item = Stack> {
        self.0.iter().copied()
    }

    /// The first that is not Quipu's, if there is one.
    pub fn first_other(&self) -> Option<Stack> {
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

/// All stacks, those with a choice also with each congestion control.
fn names() -> Vec<String> {
    let has_none = |name: &str| matches!(name, "quipu" | "chromium-h3");
    let others = StackName::NAMES.iter().filter(|name| !has_none(name));
    let with = |name: &&str| {
        let name = (*name).to_owned();
        let controls = match name.parse().is_ok_and(is_foreign) {
            true => QuicCongestion::NAMES,
            false => TcpCongestion::NAMES,
        };
        controls.iter().map(move |by| format!("{name}:{CONGESTION}{by}"))
    };
    let plain = StackName::NAMES.iter().map(|&name| name.to_owned());
    plain.chain(others.flat_map(with)).collect()
}

macro_rules! stack {
    () => {
        concat!(
            "(quipu|chromium-h3|(chromium-(h2|h1|mptcp-h2)|tcp-h2|tcp-h1|mptcp-h2)",
            "(:congestion=(cubic|reno|bbr))?",
            "|(quinn-h3|noq-h3)(:congestion=(cubic|newreno|bbr))?)"
        )
    };
}

/// Stacks.
static STACKS: Text = Text {
    name: "stacks",
    expected: "quipu, tcp-h2, tcp-h1, mptcp-h2, quinn-h3, noq-h3, chromium-h3, chromium-h2, chromium-h1 or \
               chromium-mptcp-h2, several separated by commas; all but quipu and chromium-h3 may name their \
               congestion control, as in tcp-h2:congestion=reno",
    pattern: concat!("^ *", stack!(), "( *, *", stack!(), ")* *$"),
    accepts: read::<Stacks>,
    numbers: Numbers::None,
    names: Names::Usual(names),
    examples: &[
        "quipu",
        "quipu,tcp-h2,mptcp-h2",
        "tcp-h2:congestion=reno,quinn-h3:congestion=newreno",
        "chromium-h3,chromium-h2:congestion=bbr",
    ],
    refused: &[
        "tcp",
        "tcp-h2:reno",
        "quipu:congestion=bbr",
        "noq-h3:congestion=reno",
        "chromium",
        "",
    ],
};

field_types! {
    Stacks: Kind::Text(&STACKS),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_of_libraries_have_the_congestion_controls_of_libraries() {
        let stacks: Stacks = "quinn-h3:congestion=newreno,noq-h3".parse().unwrap();
        assert_eq!(stacks.to_string(), "quinn-h3:congestion=newreno,noq-h3");
        assert_eq!(stacks.first_other().map(Stack::name), Some(StackName::QuinnH3));
        let told = stacks.iter().map(|stack| (stack.congestion(), stack.is_multipath()));
        let expected = [("newreno", false), ("cubic", true)];
        assert!(told.eq(expected.map(|(by, all)| (Some(by.to_owned()), all))));
        assert!(stacks.iter().all(|stack| stack.foreign().is_some() && stack.kernel().is_none()));
        for (text, told) in [
            ("quinn-h2", "did you mean `quinn-h3`?"),
            ("noq-h3:congestion=reno", "there are: cubic, newreno, bbr"),
            ("tcp-h2:congestion=newreno", "there are: cubic, reno, bbr"),
        ] {
            let error = text.parse::<Stacks>().unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }

    #[test]
    fn stacks_of_a_browser_have_the_kernels_below_them_or_http3() {
        let text = "chromium-h3,chromium-h2:congestion=bbr,chromium-h1,chromium-mptcp-h2";
        let stacks: Stacks = text.parse().unwrap();
        assert_eq!(stacks.to_string(), text);
        let below =
            stacks.iter().map(|stack| stack.kernel().map(|kernel| kernel.name().to_string()));
        let expected = [None, Some("tcp-h2"), Some("tcp-h1"), Some("mptcp-h2")];
        assert!(below.eq(expected.map(|name| name.map(str::to_owned))));
        let told = stacks.iter().map(|stack| (stack.congestion(), stack.is_multipath()));
        let expected =
            [(None, false), (Some("bbr"), false), (Some("cubic"), false), (Some("cubic"), true)];
        assert!(told.eq(expected.map(|(by, all)| (by.map(str::to_owned), all))));
        assert!(stacks.iter().all(|stack| stack.foreign().is_none()));
        for (text, told) in [
            ("chromium-h4", "did you mean `chromium-h"),
            ("chromium-h3:congestion=cubic", "chromium-h3 without parameters"),
            ("chromium-h2:congestion=newreno", "there are: cubic, reno, bbr"),
        ] {
            let error = text.parse::<Stacks>().unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }

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
