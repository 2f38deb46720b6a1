//! A scenario file to begin with: the fields that most experiments set, each with what it means.

use toml::Value;

use super::error::ScenarioError;
use super::form::Table;
use super::policies::Policies;
use super::scenario::Scenario;

/// Characters of a line of a comment; our choice.
const WIDTH: usize = 96;
/// Fields that a new file shows; what else there is has its default.
const FIELDS: [&str; 4] = ["runs", "pages", "browser", "seed"];
const POLICY_FIELDS: [&str; 3] = ["stream", "path", "congestion"];

/// Two paths of one's own, equal to those of `wifi+lte`.
const NETWORK: &str = "\
# The client reaches the server over the paths of a network. Delays are one-way.
[[networks]]
name = \"mine\"

[[networks.paths]]
name = \"wifi\"
# A recorded link instead of a rate: trace = \"FILE.csv\"; `quipu traces` lists those that come with
# the program.
down = { rate = \"55mbit\", delay = \"15ms\", loss = \"0%\" }
# What is not given for the uplink is as for the downlink.
up = { rate = \"55mbit\" }

[[networks.paths]]
name = \"lte\"
down = { rate = \"30mbit\", delay = \"10ms\", loss = \"0%\" }
up = { rate = \"30mbit\" }
";

const SWEEP: &str = "
# `quipu sweep` runs the scenario with each combination of these values.
[sweep]
\"networks.*.paths.0.down.rate\" = [\"10mbit\", \"30mbit\", \"55mbit\"]
\"networks.*.paths.0.down.loss\" = [\"0%\", \"1%\"]
";

/// What a new file has beside the fields of every new file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// Names of networks; if there is none, the file describes one.
    pub networks: Vec<String>,
    /// Whether it has a table `[sweep]`.
    pub sweep: bool,
}

impl Template {
    /// The text of a file with the values of `scenario`.
    ///
    /// # Errors
    /// If a value of the scenario cannot be written out.
    pub fn text(&self, scenario: &Scenario) -> Result<String, ScenarioError> {
        let values = scenario.to_table()?;
        let run = if self.sweep { "sweep FILE --out DIR" } else { "run FILE --out DIR" };
        let mut text = format!(
            "# `quipu {run}` runs this experiment, `quipu scenario check FILE`\n\
             # reports errors in it, `quipu scenario fields` lists all fields. Fields that are left out have\n\
             # their defaults.\n"
        );
        for field in FIELDS {
            text.push_str(&entry(Scenario::table(), field, values.get(field)));
        }
        if !self.networks.is_empty() {
            let names = self.networks.iter().cloned().map(Value::String).collect();
            text.push_str(&entry(Scenario::table(), "networks", Some(&Value::Array(names))));
        }
        text.push_str("\n# `quipu schedulers` lists the policies, `quipu schedulers NAME` explains one.\n[policies]");
        let policies = values.get("policies").and_then(Value::as_table);
        for field in POLICY_FIELDS {
            let value = policies.and_then(|policies| policies.get(field));
            text.push_str(&entry(Policies::table(), field, value));
        }
        if self.networks.is_empty() {
            text.push('\n');
            text.push_str(NETWORK);
        }
        if self.sweep {
            text.push_str(SWEEP);
        }
        Ok(text)
    }
}

/// A field with its meaning in front of it.
fn entry(table: &Table, field: &str, value: Option<&Value>) -> String {
    let (Some(known), Some(value)) = (table.field(field), value) else { return String::new() };
    let mut text = String::from("\n");
    let mut line = String::from("#");
    for word in known.about.split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH {
            text.push_str(&line);
            text.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    format!("{text}{line}\n{field} = {value}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Document, SweepSpec, find_network};

    #[test]
    fn a_new_file_is_a_scenario_with_the_values_that_were_chosen() {
        let chosen = Scenario { runs: 7, browser: "firefox".to_owned(), ..Scenario::default() };
        for sweep in [false, true] {
            let text = Template { sweep, ..Template::default() }.text(&chosen).unwrap();
            let document = Document::new(&text, "new.toml");
            let read = document.scenario().unwrap();
            assert!(read.problems().is_empty(), "{:?}", read.problems());
            let mut network = find_network("wifi+lte").unwrap();
            network.name.clone_from(&read.networks[0].name);
            network.about.clone_from(&read.networks[0].about);
            assert_eq!(read.networks, [network]);
            assert_eq!(Scenario { networks: chosen.networks.clone(), sweep: None, ..read }, chosen);
            let points = SweepSpec::read(&document).unwrap().map(|spec| spec.points().len());
            assert_eq!(points, sweep.then_some(6));
            assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        }
    }

    #[test]
    fn networks_that_come_with_the_program_are_named() {
        let networks = vec!["dsl+lte".to_owned(), "wifi+lte".to_owned()];
        let text = Template { networks, sweep: false }.text(&Scenario::default()).unwrap();
        let read = Document::new(&text, "new.toml").scenario().unwrap();
        let names: Vec<&str> = read.networks.iter().map(|network| &*network.name).collect();
        assert_eq!(names, ["dsl+lte", "wifi+lte"]);
    }
}
