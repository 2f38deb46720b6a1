//! The network that one path of a network would be without the others.

use super::{LinkError, Network, PathSpec};

impl Network {
    /// The network of one path that path `index` makes alone: its links, or those of the path that it
    /// names as its bottleneck, its access links, the links that it names in `via`, and the radio if
    /// it leads over it. It has the path's name.
    ///
    /// What depends on several paths is that of the one: a queue in bandwidth-delay products has
    /// those of its round trip, and recordings begin at a time drawn from its own.
    ///
    /// # Errors
    /// If there is no such path, or it names links that are not there.
    pub fn alone(&self, index: usize) -> Result<Network, LinkError> {
        let none = || LinkError::Invalid(format!("path is {index}; expected one of the network's"));
        let path = self.paths.get(index).ok_or_else(none)?;
        let owner = self.paths.get(self.bottleneck(index)?).ok_or_else(none)?;
        let via = self.via(index)?;
        let shared = self.links.iter().enumerate().filter(|(place, _)| via.contains(place));
        Ok(Network {
            name: path.name.clone(),
            about: format!("{} of {}, alone", path.name, self.name),
            server: self.server.clone(),
            links: shared.map(|(_, shared)| shared.clone()).collect(),
            paths: vec![PathSpec { links: owner.links.clone(), ..path.clone() }],
            radio: self.radio.clone().filter(|_| path.radio.is_some()),
        })
    }

    /// True if what goes over one of these paths may delay or displace what goes over the other:
    /// they have a link or a radio channel in common.
    pub fn share_links(&self, one: usize, other: usize) -> bool {
        let same = |of: &dyn Fn(usize) -> Option<usize>| {
            of(one).zip(of(other)).is_some_and(|(one, other)| one == other)
        };
        let channel = |index: usize| {
            let name = self.paths.get(index)?.radio.as_ref()?;
            let radio = self.radio.as_ref()?;
            let point = radio.access_points.get(radio.access_point(name).ok()?)?;
            Some(usize::from(point.channel))
        };
        let via = |index| self.via(index).unwrap_or_default();
        same(&|index| self.bottleneck(index).ok())
            || same(&channel)
            || via(one).iter().any(|place| via(other).contains(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find_network;

    const SHARED: &str = r#"
        name = "shared"
        links = [
            { name = "unused", down = { rate = "1mbit", delay = "1ms" } },
            { name = "backbone", down = { rate = "50mbit", delay = "5ms" } },
        ]
        paths = [
            { name = "wifi", down = { rate = "20mbit", delay = "10ms" }, via = ["backbone"] },
            { name = "lte", down = { rate = "10mbit", delay = "20ms" } },
            { name = "home", bottleneck = "wifi", access = { rate = "5mbit", delay = "2ms" } },
            { name = "wire", down = { rate = "9mbit", delay = "9ms" }, via = ["unused", "backbone"] },
        ]
    "#;

    fn shared() -> Network {
        toml::from_str(SHARED).unwrap()
    }

    #[test]
    fn a_path_alone_has_what_it_leads_over_and_nothing_else() {
        let alone = |index| shared().alone(index).unwrap();
        let names = |network: &Network| -> Vec<String> {
            network.links.iter().map(|links| links.name.clone()).collect()
        };
        let wifi = alone(0);
        assert_eq!((wifi.name.as_str(), wifi.paths.len()), ("wifi", 1));
        assert_eq!(names(&wifi), ["backbone"]);
        assert_eq!(wifi.paths[0], shared().paths[0]);
        assert!(alone(1).links.is_empty());
        assert_eq!(names(&alone(3)), ["unused", "backbone"]);
        for index in 0..4 {
            let (alone, all) = (alone(index), shared());
            assert_eq!(alone.round_trip(0).unwrap(), all.round_trip(index).unwrap());
            assert_eq!(crate::networks::problems(&alone, "networks[0]").len(), 0);
        }
    }

    #[test]
    fn over_the_links_of_another_path_it_has_them_itself() {
        let home = shared().alone(2).unwrap();
        let text = r#"
            name = "home"
            about = "home of shared, alone"
            paths = [{ name = "home", down = { rate = "20mbit", delay = "10ms" },
                       access = { rate = "5mbit", delay = "2ms" } }]
        "#;
        assert_eq!(home, toml::from_str(text).unwrap());
    }

    #[test]
    fn the_radio_is_there_only_for_a_path_over_it() {
        let scene = find_network("framework-scene-high").unwrap();
        let over_air = (0..scene.paths.len()).map(|index| scene.paths[index].radio.is_some());
        let kept = (0..scene.paths.len()).map(|index| scene.alone(index).unwrap().radio.is_some());
        assert_eq!(kept.collect::<Vec<_>>(), over_air.collect::<Vec<_>>());
    }

    #[test]
    fn there_is_none_of_a_path_that_is_not_there() {
        let error = shared().alone(4).unwrap_err().to_string();
        assert!(error.contains("path is 4; expected one of the network's"), "{error}");
    }

    #[test]
    fn links_are_shared_by_bottleneck_by_name_or_by_channel() {
        let shares = |one, other| shared().share_links(one, other);
        assert!(shares(0, 2) && shares(2, 0), "a bottleneck");
        assert!(shares(0, 3), "the backbone");
        assert!(!shares(0, 1) && !shares(1, 3) && !shares(2, 1));
        assert!(!shares(2, 3), "the second leads over the links of the first, not over its `via`");
        let mut scene = find_network("framework-scene-high").unwrap();
        let mut radio = scene.radio.clone().unwrap();
        let other = radio.access_points[0].clone();
        radio.access_points.push(other);
        radio.access_points[1].name = "other".to_owned();
        scene.radio = Some(radio);
        let mut path = scene.paths.iter().find(|path| path.radio.is_some()).unwrap().clone();
        path.radio = Some("other".to_owned());
        let first = scene.paths.iter().position(|path| path.radio.is_some()).unwrap();
        scene.paths.push(path);
        assert!(scene.share_links(first, scene.paths.len() - 1), "one channel");
    }
}
