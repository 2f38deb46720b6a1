//! What a run goes over: all paths of its network, or the network that one of them makes alone.

use quipu_scenario::{Network, Scenario, ScenarioError};

/// The network of a run, and which of the scenario's traffic goes where on it.
#[derive(Clone, Debug)]
pub struct RunNetwork {
    /// The network.
    pub network: Network,
    /// Per path of it, its position among the paths that are compared.
    pub paths: Vec<usize>,
    /// Per path of it, the position of the path that has its links among those that are compared.
    pub owners: Vec<usize>,
    /// Per flow of the scenario, positions of its paths in `network`; none if it is not there.
    pub flow_paths: Vec<Vec<usize>>,
    /// Per sender of cross traffic, the position of its path in `network`; `None` if it is not there.
    pub cross_paths: Vec<Option<usize>>,
}

impl RunNetwork {
    /// All of `network`, with all traffic of `scenario`.
    ///
    /// # Errors
    /// If traffic names a path that is not there.
    pub(super) fn whole(
        scenario: &Scenario,
        network: &Network,
    ) -> Result<RunNetwork, ScenarioError> {
        let flows = scenario.flows.iter().enumerate();
        let flow_paths =
            flows.map(|(index, flow)| flow.paths_on(&network.paths, &format!("flows[{index}]")));
        let cross = scenario.cross.iter().enumerate();
        let cross_paths = cross.map(|(index, sender)| {
            sender.path_on(&network.paths, &format!("cross[{index}]")).map(Some)
        });
        let count = network.paths.len();
        Ok(RunNetwork {
            network: network.clone(),
            paths: (0..count).collect(),
            // A bottleneck that is none is an error of the scenario.
            owners: (0..count).map(|path| network.bottleneck(path).unwrap_or(path)).collect(),
            flow_paths: flow_paths.collect::<Result<_, _>>()?,
            cross_paths: cross_paths.collect::<Result<_, _>>()?,
        })
    }

    /// The network that path `path` of this one makes alone: traffic that goes over the path is there,
    /// and of flows over several that part of it.
    ///
    /// `None` if that would not be the path as it is: other traffic goes over another one that shares
    /// links with it.
    pub(super) fn alone(&self, path: usize) -> Option<RunNetwork> {
        let is_lost = |other: &usize| *other != path && self.network.share_links(path, *other);
        let without = |paths: &&Vec<usize>| !paths.contains(&path);
        let mut lost = self
            .flow_paths
            .iter()
            .filter(without)
            .flatten()
            .chain(self.cross_paths.iter().flatten());
        if lost.any(is_lost) {
            return None;
        }
        let on = |paths: &Vec<usize>| if paths.contains(&path) { vec![0] } else { Vec::new() };
        let here = |at: &Option<usize>| at.filter(|at| *at == path).map(|_| 0);
        Some(RunNetwork {
            network: self.network.alone(path).ok()?,
            paths: vec![*self.paths.get(path)?],
            owners: vec![*self.owners.get(path)?],
            flow_paths: self.flow_paths.iter().map(on).collect(),
            cross_paths: self.cross_paths.iter().map(here).collect(),
        })
    }

    /// The position among the paths that are compared of the path of that position here, or of a
    /// connection over all of them.
    pub fn position(&self, path: u32) -> u32 {
        let position = usize::try_from(path).ok().and_then(|path| self.paths.get(path));
        position.and_then(|position| u32::try_from(*position).ok()).unwrap_or(path)
    }

    /// True if the flow at that position in the scenario is there.
    pub fn has_flow(&self, index: usize) -> bool {
        self.flow_paths.get(index).is_some_and(|paths| !paths.is_empty())
    }

    /// True if the sender of cross traffic at that position in the scenario is there.
    pub fn has_cross(&self, index: usize) -> bool {
        self.cross_paths.get(index).is_some_and(Option::is_some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `over` are further tables of a scenario.
    fn whole(over: &str) -> RunNetwork {
        let text = format!(
            r#"
            [[networks]]
            name = "three"
            paths = [
                {{ name = "wifi", down = {{ rate = "20mbit", delay = "10ms" }} }},
                {{ name = "lte", down = {{ rate = "10mbit", delay = "20ms" }} }},
                {{ name = "far", bottleneck = "wifi", access = {{ rate = "5mbit", delay = "2ms" }} }},
            ]
            {over}
            "#
        );
        let scenario = Scenario::from_toml(&text, "a.toml").unwrap();
        RunNetwork::whole(&scenario, &scenario.networks[0]).unwrap()
    }

    #[test]
    fn records_of_a_path_alone_have_its_place_among_all() {
        let whole = whole("");
        assert_eq!((whole.paths.clone(), whole.owners.clone()), (vec![0, 1, 2], vec![0, 1, 0]));
        let far = whole.alone(2).unwrap();
        assert_eq!((far.paths.clone(), far.owners.clone()), (vec![2], vec![0]));
        assert_eq!((far.position(0), far.network.paths[0].name.as_str()), (2, "far"));
        assert!(whole.alone(3).is_none());
    }

    #[test]
    fn traffic_over_the_path_stays_and_other_traffic_is_left_out() {
        let whole = whole(
            r#"
            [[flows]]
            name = "both"
            paths = ["lte", "wifi"]
            [[flows]]
            name = "lte"
            paths = ["lte"]
            [[cross]]
            name = "noise"
            path = "lte"
            rate = "1mbit"
            "#,
        );
        let lte = whole.alone(1).unwrap();
        assert_eq!(lte.flow_paths, [vec![0], vec![0]]);
        assert_eq!(lte.cross_paths, [Some(0)]);
        let wifi = whole.alone(0).unwrap();
        assert_eq!(wifi.flow_paths, [vec![0], vec![]]);
        assert_eq!((wifi.has_flow(0), wifi.has_flow(1), wifi.has_cross(0)), (true, false, false));
    }

    #[test]
    fn a_path_whose_links_carry_traffic_that_would_be_left_out_is_not_taken_alone() {
        let whole = whole("[[flows]]\nname = \"bulk\"\npaths = [\"wifi\"]\n");
        assert!(whole.alone(0).is_some() && whole.alone(1).is_some());
        assert!(whole.alone(2).is_none(), "the flow fills the links of wifi, over which far leads");
        let cross = "[[cross]]\nname = \"noise\"\npath = \"far\"\nrate = \"1mbit\"\n";
        assert!(self::whole(cross).alone(0).is_none());
    }
}
