//! Policies by name: the seam to `quipu-policy`.

mod words;

use quipu_base::{Role, Seed};
use quipu_policy::StreamPolicy;
use quipu_policy::conformance::{Verdict, stands};
use quipu_policy::registry::{BuildContext, BuildError, Layer, Part, Policies, PolicySpec};

use quipu_scenario::{FlowSpec, HttpVersion, Network, Scenario, ScenarioError, Stack, split_list};

pub use quipu_policy::registry::{Registry, SpecError};
pub use words::names;

/// A row of a comparison: who decides on both ends.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyRow {
    /// What tables call it, such as `rr + minrtt`; without pages, the congestion controller.
    pub label: String,
    /// What carries pages.
    pub stack: Stack,
    /// Everything that was chosen for pages. Nothing is asked of it where another stack carries them.
    pub spec: PolicySpec,
    /// How HTTP is carried. Over one byte stream the stream policy is HTTP's.
    pub http: HttpVersion,
    /// What decides in the transport of pages: the same, but over one byte stream for the order of
    /// streams, of which there is one.
    pub(crate) transport: PolicySpec,
    /// What was chosen for each flow of the scenario, in its order.
    pub flows: Vec<PolicySpec>,
    /// The path that makes the network of the row alone; `None`: all paths.
    pub alone: Option<AlonePath>,
}

/// A path of a network that is taken for all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlonePath {
    /// Its position among the paths of the network.
    pub position: usize,
    /// Its name.
    pub name: String,
    /// What tables call it: its name, with its position where another path has the same.
    label: String,
}

impl AlonePath {
    /// The path of `network` at `position`, if there is one.
    pub(crate) fn of(network: &Network, position: usize) -> Option<AlonePath> {
        let name = network.paths.get(position)?.name.clone();
        let label = match network.paths.iter().filter(|path| path.name == name).count() {
            0 | 1 => name.clone(),
            _ => format!("{name} (path {position})"),
        };
        Some(AlonePath { position, name, label })
    }
}

impl PolicyRow {
    /// All that was chosen for pages and flows.
    pub fn specs(&self) -> impl Iterator<Item = &PolicySpec> {
        [&self.spec, &self.transport].into_iter().chain(&self.flows)
    }

    /// Everything that was chosen for pages, with every parameter, or the stack if it is another; how HTTP is
    /// carried if not over QUIC's streams; the path if there is only one.
    pub fn full_text(&self) -> String {
        let mut text = match (self.stack, self.stack.congestion()) {
            (Stack::Quipu, _) => self.spec.full_text(),
            (stack, None) => format!("stack={}", stack.name()),
            (stack, Some(congestion)) => {
                format!("stack={} congestion={congestion}", stack.name())
            }
        };
        if self.stack == Stack::Quipu && !matches!(self.http, HttpVersion::H2 | HttpVersion::Raw) {
            text.push_str(&format!(" http={}", self.http));
        }
        if let Some(alone) = &self.alone {
            text.push_str(&format!(" alone={}", alone.label));
        }
        text
    }
}

/// What stands in a scenario where a layer is left to the others.
const LEFT_OUT: [&str; 2] = ["default", "none"];

/// What a flow has where it leaves its controller to the row.
const OF_ROW: &str = "default";
/// The controller that the transport's profile has.
const OF_PROFILE: &str = "default";

/// What tables call the one row of flows that name their controllers themselves.
const AS_GIVEN: &str = "as given";

/// The stream policy of paths alone where a scenario names none.
const STREAM_ALONE: &str = "rr";
/// The path policy of paths alone.
const PATH_ALONE: &str = "minrtt";

/// What stands in a scenario for every policy of a layer.
const ALL: &str = "all";

/// The rows of `scenario` on a network: every stream policy with every path policy, every joint one,
/// and each of the paths `alone`; all of them with each policy of acknowledgements, each congestion
/// controller and each way to carry HTTP. Without pages only the first two of these make rows.
/// Stacks other than Quipu's have rows of their own, in the order of the scenario's stacks: one over all
/// paths, or one over each path alone. Without pages there are none.
///
/// A path alone is a network of one path. It has the first stream policy, or that of [`STREAM_ALONE`]
/// if the scenario has none, and [`PATH_ALONE`], which there does what every path policy does.
///
/// `all` stands for every policy of its layer, with its defaults; what does not go together is left
/// out then, and so is what needs a file. `all` for streams and for paths, with no joint policy named, means these too.
///
/// # Errors
/// If a policy is unknown, its parameters are wrong, or policies that were named do not go together.
pub(crate) fn rows(
    scenario: &Scenario,
    alone: &[AlonePath],
    registry: &Registry,
) -> Result<Vec<PolicyRow>, ScenarioError> {
    let acks = list(&scenario.policies.ack);
    let congestions = congestions(scenario);
    let mut rows = Rows { scenario, registry, common: Common::default(), rows: Vec::new() };
    let before = scenario.stack.iter().take_while(|stack| *stack != Stack::Quipu).count();
    let has_quipu = scenario.stack.iter().any(|stack| stack == Stack::Quipu);
    rows.add_others(scenario.stack.iter().take(before), alone)?;
    if !has_quipu && scenario.has_pages() {
        return Ok(rows.rows);
    }
    // Without pages there is no HTTP, and one way is as good as several.
    let versions =
        scenario.http.iter().take(if scenario.pages.is_empty() { 1 } else { usize::MAX });
    let versions = versions.flat_map(|http| {
        expand(&acks, Layer::Ack, registry).into_iter().map(move |ack| (http, ack))
    });
    for (http, ack) in versions {
        for congestion in expand(&congestions, Layer::Congestion, registry) {
            rows.common = Common {
                http,
                http_is_one_of_several: scenario.http.are_several() && !scenario.pages.is_empty(),
                ack: ack.text,
                ack_is_one_of_several: acks.len() > 1 || ack.from_all,
                congestion: congestion.text,
                congestion_is_one_of_several: congestions.len() > 1 || congestion.from_all,
            };
            rows.add_all(alone, ack.from_all || congestion.from_all)?;
        }
    }
    rows.add_others(scenario.stack.iter().skip(before), alone)?;
    Ok(rows.rows)
}

/// Policies of `scenario` that there are not, or whose parameters are wrong, each with its field.
pub(crate) fn problems(scenario: &Scenario, registry: &Registry) -> Vec<ScenarioError> {
    let mut problems = Vec::new();
    let mut check = |layer: Layer, text: &str, field: String| {
        if text != ALL
            && let Err(error) = Part::read(registry, layer, text)
        {
            problems.push(words::refused(error).at(field));
        }
    };
    let policies = &scenario.policies;
    let lists = [
        (Layer::Stream, &policies.stream, "stream"),
        (Layer::Path, &policies.path, "path"),
        (Layer::Joint, &policies.joint, "joint"),
    ];
    for (layer, items, name) in lists {
        for (index, text) in items.iter().enumerate() {
            check(layer, text, format!("policies.{name}[{index}]"));
        }
    }
    let texts = [
        (Layer::Ack, &policies.ack, "ack"),
        (Layer::Congestion, &policies.congestion, "congestion"),
    ];
    for (layer, text, name) in texts {
        for text in list(text).iter().filter(|text| *text != OF_PROFILE) {
            check(layer, text, format!("policies.{name}"));
        }
    }
    let others = [
        (Layer::Pack, &policies.pack, "pack"),
        (Layer::Resend, &policies.resend, "resend"),
        (Layer::Reinject, &policies.reinject, "reinject"),
    ];
    for (layer, text, name) in others {
        if !LEFT_OUT.contains(&text.as_str()) {
            check(layer, text, format!("policies.{name}"));
        }
    }
    for (index, flow) in scenario.flows.iter().enumerate() {
        if flow.congestion != OF_ROW {
            check(Layer::Congestion, &flow.congestion, format!("flows[{index}].congestion"));
        }
        check(Layer::Path, &flow.path, format!("flows[{index}].path"));
    }
    problems
}

/// The congestion controllers of `scenario`; in place of `default` that of its transport.
fn congestions(scenario: &Scenario) -> Vec<String> {
    let own = scenario.transport.profile.congestion();
    let named = list(&scenario.policies.congestion).into_iter();
    named.map(|text| if text == OF_PROFILE { own.to_owned() } else { text }).collect()
}

/// The items of a field that holds several policies of a layer.
fn list(text: &str) -> Vec<String> {
    let items = split_list(text);
    // No name is an unknown name.
    if items.is_empty() { vec![text.to_owned()] } else { items }
}

/// A policy as a scenario names it.
struct Named<'a> {
    text: &'a str,
    /// Not by its name, but as one of all.
    from_all: bool,
}

fn expand<'a>(list: &'a [String], layer: Layer, registry: &'a Registry) -> Vec<Named<'a>> {
    let mut named = Vec::new();
    for text in list {
        if text == ALL {
            let alone = registry.of(layer).filter(|entry| !entry.needs_file());
            let names = alone.map(|entry| entry.name);
            named.extend(names.map(|text| Named { text, from_all: true }));
        } else {
            named.push(Named { text, from_all: false });
        }
    }
    named
}

/// What a row has beside its choice of streams and paths.
#[derive(Clone, Copy, Default)]
struct Common<'a> {
    http: HttpVersion,
    http_is_one_of_several: bool,
    ack: &'a str,
    ack_is_one_of_several: bool,
    congestion: &'a str,
    congestion_is_one_of_several: bool,
}

struct Rows<'a> {
    scenario: &'a Scenario,
    registry: &'a Registry,
    common: Common<'a>,
    rows: Vec<PolicyRow>,
}

impl Rows<'_> {
    /// Adds the rows with the present policies of acknowledgements and congestion. `if_legal`: see
    /// [`Rows::add`].
    fn add_all(&mut self, alone: &[AlonePath], if_legal: bool) -> Result<(), ScenarioError> {
        if !self.scenario.has_pages() {
            return self.add(&[], None, if_legal);
        }
        let policies = &self.scenario.policies;
        let streams = expand(&policies.stream, Layer::Stream, self.registry);
        let paths = expand(&policies.path, Layer::Path, self.registry);
        for path in &paths {
            for stream in &streams {
                let choice = [(Layer::Stream, stream.text), (Layer::Path, path.text)];
                self.add(&choice, None, if_legal || stream.from_all || path.from_all)?;
            }
        }
        let everything = [ALL.to_owned()];
        let has_all = |list: &[String]| list.contains(&everything[0]);
        let all_pairs = has_all(&policies.stream) && has_all(&policies.path);
        let joint: &[String] =
            if all_pairs && policies.joint.is_empty() { &everything } else { &policies.joint };
        for joint in expand(joint, Layer::Joint, self.registry) {
            if self.common.http == HttpVersion::H2Tcp {
                if if_legal || joint.from_all {
                    continue;
                }
                let expected = "none with http = h2-tcp, whose one byte stream leaves a policy of \
                                streams and paths no streams";
                return Err(ScenarioError::invalid("policies.joint", joint.text, expected));
            }
            self.add(&[(Layer::Joint, joint.text)], None, if_legal || joint.from_all)?;
        }
        if policies.baselines {
            let stream = streams.first().map_or(STREAM_ALONE, |stream| stream.text);
            let choice = [(Layer::Stream, stream), (Layer::Path, PATH_ALONE)];
            for path in alone {
                self.add(&choice, Some(path), if_legal)?;
            }
        }
        Ok(())
    }

    /// Adds the rows of those of `stacks` that are not Quipu's.
    fn add_others(
        &mut self,
        stacks: impl Iterator<Item = Stack>,
        alone: &[AlonePath],
    ) -> Result<(), ScenarioError> {
        if !self.scenario.has_pages() {
            return Ok(());
        }
        for stack in stacks.filter(|stack| *stack != Stack::Quipu) {
            let all = [None];
            let each: Vec<Option<&AlonePath>> = alone.iter().map(Some).collect();
            // A network of one path has none alone.
            let over = if stack.is_multipath() || alone.is_empty() { &all[..] } else { &each };
            for alone in over {
                let row = other_row(self.registry, stack, *alone).map_err(words::refused)?;
                self.rows.push(row);
            }
        }
        Ok(())
    }

    /// Adds a row, over the path `alone` if that is given, if there is none with the same choice yet.
    /// `if_legal`: not if its parts do not go together.
    fn add(
        &mut self,
        choice: &[(Layer, &str)],
        alone: Option<&AlonePath>,
        if_legal: bool,
    ) -> Result<(), ScenarioError> {
        match row(self.registry, self.scenario, self.common, choice, alone) {
            Ok(row) => {
                let same = |other: &PolicyRow| {
                    (other.stack, &other.spec, other.http, &other.alone)
                        == (row.stack, &row.spec, row.http, &row.alone)
                };
                if !self.rows.iter().any(same) {
                    self.rows.push(row);
                }
                Ok(())
            }
            Err(SpecError::Conflict { .. }) if if_legal => Ok(()),
            Err(error) => Err(words::refused(error)),
        }
    }
}

fn row(
    registry: &Registry,
    scenario: &Scenario,
    common: Common<'_>,
    choice: &[(Layer, &str)],
    alone: Option<&AlonePath>,
) -> Result<PolicyRow, SpecError> {
    let policies = &scenario.policies;
    let others = [
        (Layer::Pack, policies.pack.as_str()),
        (Layer::Resend, policies.resend.as_str()),
        (Layer::Reinject, policies.reinject.as_str()),
        (Layer::Ack, common.ack),
        (Layer::Congestion, common.congestion),
    ];
    let others = others.into_iter().filter(|(_, text)| !LEFT_OUT.contains(text));
    let spec = PolicySpec::choose(registry, choice.iter().copied().chain(others))?;
    let flows = scenario.flows.iter().map(|flow| of_flow(registry, flow, common));
    let flows = flows.collect::<Result<Vec<_>, _>>()?;
    let alone_name = alone.map(|path| format!("{} alone", path.label));
    let mut names: Vec<&str> = match &alone_name {
        Some(name) => vec![name],
        None => choice.iter().map(|(_, text)| *text).collect(),
    };
    names.extend(common.ack_is_one_of_several.then_some(common.ack));
    names.extend(common.congestion_is_one_of_several.then_some(common.congestion));
    if names.is_empty() {
        let by_row = scenario.flows.iter().any(|flow| flow.congestion == OF_ROW);
        names.push(if by_row { common.congestion } else { AS_GIVEN });
    }
    let http = common.http;
    let version = http.to_string();
    names.extend(common.http_is_one_of_several.then_some(version.as_str()));
    let transport = match http {
        HttpVersion::H2 | HttpVersion::H3 | HttpVersion::Raw => spec.clone(),
        HttpVersion::H2Tcp => spec.with(registry, Layer::Stream, "rr")?,
    };
    Ok(PolicyRow {
        label: names.join(" + "),
        stack: Stack::Quipu,
        spec,
        http,
        transport,
        flows,
        alone: alone.cloned(),
    })
}

/// The row of a stack other than Quipu's, over the path `alone` if that is given.
fn other_row(
    registry: &Registry,
    stack: Stack,
    alone: Option<&AlonePath>,
) -> Result<PolicyRow, SpecError> {
    let path = alone.map(|path| format!("{} alone", path.label));
    let names = path.into_iter().chain([stack.name().to_string()]).chain(stack.congestion());
    let label = names.collect::<Vec<String>>().join(" + ");
    // What is there where nothing is asked.
    let choice = [(Layer::Stream, STREAM_ALONE), (Layer::Path, PATH_ALONE)];
    let spec = PolicySpec::choose(registry, choice)?;
    Ok(PolicyRow {
        label,
        stack,
        transport: spec.clone(),
        spec,
        http: stack.http(),
        flows: Vec::new(),
        alone: alone.cloned(),
    })
}

/// The choice of a flow: acknowledgements, and congestion control if it names none, are those of the
/// row; its streams take turns.
fn of_flow(
    registry: &Registry,
    flow: &FlowSpec,
    common: Common<'_>,
) -> Result<PolicySpec, SpecError> {
    let congestion =
        if flow.congestion == OF_ROW { common.congestion } else { flow.congestion.as_str() };
    let choice = [
        (Layer::Stream, "rr"),
        (Layer::Path, flow.path.as_str()),
        (Layer::Ack, common.ack),
        (Layer::Congestion, congestion),
    ];
    PolicySpec::choose(registry, choice)
}

/// The policies of the end `role` of a connection, whose chance comes from `seed`.
///
/// # Errors
/// None for a row of a plan, which was built once before.
pub(crate) fn build(
    spec: &PolicySpec,
    initial_window: u32,
    (role, seed): (Role, Seed),
) -> Result<Policies, SpecError> {
    let mut context = BuildContext::new(seed);
    context.role = Some(role);
    context.initial_window = initial_window;
    spec.build(&context)
}

/// The stream policy alone of the end `role`, for HTTP over one byte stream.
///
/// # Errors
/// If there is none, in a joint choice. None for a row of a plan.
pub(crate) fn build_stream(
    spec: &PolicySpec,
    initial_window: u32,
    (role, seed): (Role, Seed),
) -> Result<Box<dyn StreamPolicy>, SpecError> {
    let layer = Layer::Stream;
    let missing = || SpecError::Build {
        policy: layer.name().to_owned(),
        error: BuildError::Missing { layer },
    };
    let mut context = BuildContext::new(seed);
    context.role = Some(role);
    context.initial_window = initial_window;
    let built = spec.part(layer).ok_or_else(missing)?.build(&mut context)?;
    built.stream.ok_or_else(missing)
}

/// What there is to know of every policy of `registry` called `name`.
///
/// # Errors
/// If there is none; the error names the nearest.
pub fn explain(registry: &Registry, name: &str) -> Result<String, SpecError> {
    // Somebody may have written parameters too, as on the command line.
    let name = name.split(':').next().unwrap_or(name);
    registry.describe(name)
}

/// Holds the policies called `text`, such as `ecf:beta=0.5`, to the rules of the seam, each in every
/// layer that has one of that name, with the defaults of the other layers.
///
/// # Errors
/// If there is none of that name, or its parameters are wrong.
pub fn check(
    registry: &Registry,
    text: &str,
    scripts: u32,
) -> Result<Vec<(Layer, Verdict)>, SpecError> {
    let name = text.split(':').next().unwrap_or(text);
    let layers: Vec<Layer> =
        registry.iter().filter(|entry| entry.name == name).map(|entry| entry.layer).collect();
    if layers.is_empty() {
        // The error names the nearest.
        registry.describe(name)?;
    }
    let checked = layers.into_iter().map(|layer| {
        let spec = PolicySpec::choose(registry, [(layer, text)])?;
        Ok((layer, stands(&spec, scripts)?))
    });
    checked.collect()
}

#[cfg(test)]
mod tests;
