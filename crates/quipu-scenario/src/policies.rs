//! Policies as a scenario names them.
//!
//! Which policies there are is known to whoever runs scenarios, and so is what their parameters mean.

use super::error::ScenarioError;
use super::form::text::any;
use super::form::{Names, Numbers, Text, table};
use super::policy_layer::PolicyLayer;

table! {
    /// The policies that are compared: every stream policy with every path policy, then every joint
    /// one, then each path alone. `all` stands for every policy of its layer. `quipu schedulers` lists them, and `quipu
    /// schedulers NAME` shows the parameters of one.
    pub struct Policies as "Policies" {
        /// Stream policies.
        pub stream: Vec<String> [text STREAM] =
            ["rr", "fifo", "wrr", "swrr", "dwrr"].map(str::to_owned).to_vec(),
        /// Path policies.
        pub path: Vec<String> [text PATH] = vec!["minrtt".to_owned()],
        /// Policies that decide both at once.
        pub joint: Vec<String> [text JOINT] = Vec::new(),
        /// Which path an acknowledgement takes; several policies, separated by commas, give one row each.
        pub ack: String [text ACKS] = "own".to_owned(),
        /// Congestion control of each path; several controllers, separated by commas, give one row each. `default`: the
        /// controller of `transport.profile`, which is `newreno` if the profile is omitted too.
        pub congestion: String [text CONGESTIONS] = "default".to_owned(),
        /// How many streams share a packet. `default`: as the stream policy specifies, `many` if it does not.
        pub pack: String [text PACK] = "default".to_owned(),
        /// When, and on which path, lost bytes are retransmitted. `default`: as the stream policy specifies.
        pub resend: String [text RESEND] = "default".to_owned(),
        /// Copies of bytes in flight, sent on other paths. `none`: only those that a path policy makes.
        pub reinject: String [text REINJECT] = "none".to_owned(),
        /// Whether each path of a network with several paths also gets a row, such as `lte alone`: a network
        /// that consists of this path only, handshake included, with the first stream policy. Flows and
        /// cross traffic are kept if they use the path; a path gets no row if it shares links with other
        /// paths and some of their traffic would be missing.
        pub baselines: bool = true,
    }
}

impl Policies {
    /// What of them does not go together.
    pub(super) fn problems(&self) -> Vec<ScenarioError> {
        let mut problems = Vec::new();
        if self.joint.is_empty() && self.stream.is_empty() {
            let expected = "at least one stream policy or joint policy";
            problems.push(ScenarioError::invalid("policies.stream", "empty", expected));
        }
        if !self.stream.is_empty() && self.path.is_empty() {
            let expected = "at least one path policy for the stream policies";
            problems.push(ScenarioError::invalid("policies.path", "empty", expected));
        }
        problems
    }
}

macro_rules! policy {
    () => {
        r"[a-z0-9_-]+(:[a-z0-9_-]+=[^,\s]+(,[a-z0-9_-]+=[^,\s]+)*)?"
    };
}

macro_rules! policies {
    ($($(#[$meta:meta])* $one:ident, $layer:ident, $name:literal, $examples:expr;)+) => {
        $($(#[$meta])*
        pub(crate) static $one: Text = Text {
            name: $name,
            expected: "a policy, such as `quipu schedulers` lists them, with parameters as in \
                       ecf:beta=0.25,delta=1",
            pattern: concat!("^ *", policy!(), " *$"),
            accepts: any,
            numbers: Numbers::None,
            names: Names::Policies(PolicyLayer::$layer),
            examples: $examples,
            refused: &[""],
        };)+
    };
}

policies! {
    /// A stream policy.
    STREAM, Stream, "stream policy", &["dwrr", "rr:unit=frame", "all"];
    /// A path policy.
    PATH, Path, "path policy", &["minrtt", "ecf:beta=0.25,delta=1", "single:id=1", "all"];
    /// A joint policy.
    JOINT, Joint, "joint policy", &["sa-ecf", "sec:queue=paper", "all"];
    /// A flow's controller.
    FLOW_CONGESTION, Congestion, "congestion controller", &["default", "cubic"];
    /// How many streams share a packet.
    PACK, Pack, "packing policy", &["default"];
    /// When lost bytes go again.
    RESEND, Resend, "resending policy", &["default"];
    /// Copies.
    REINJECT, Reinject, "reinjection policy", &["none"];
}

macro_rules! lists_of_policies {
    ($($(#[$meta:meta])* $one:ident, $layer:ident, $name:literal, $examples:expr;)+) => {
        $($(#[$meta])*
        pub(crate) static $one: Text = Text {
            name: $name,
            expected: "policies, such as `quipu schedulers` lists them, separated by commas",
            pattern: concat!("^ *", policy!(), "( *, *", policy!(), ")* *$"),
            accepts: any,
            numbers: Numbers::None,
            names: Names::Policies(PolicyLayer::$layer),
            examples: $examples,
            refused: &[""],
        };)+
    };
}

lists_of_policies! {
    /// Policies of acknowledgements.
    ACKS, Ack, "acknowledgement policies", &["own", "own,min-owd", "all"];
    /// Controllers.
    CONGESTIONS, Congestion, "congestion controllers", &["default", "newreno,cubic,olia", "all"];
}
