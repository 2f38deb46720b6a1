//! How the paths of networks differ, from `networks.csv`.

use std::collections::BTreeMap;

use super::table::Rows;
use super::tables::Folder;
use crate::notices::{Notices, clean};
use crate::results::{Place, Results};

/// A path of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NetworkPath {
    /// Its name.
    pub(crate) name: String,
    /// Towards the client, in bits per second; `None` if unknown.
    pub(crate) down_rate: Option<u64>,
    /// Towards the server.
    pub(crate) up_rate: Option<u64>,
    /// Without queues, in nanoseconds.
    pub(crate) round_trip: Option<u64>,
    /// Towards the client, in millionths.
    pub(crate) down_loss: Option<u64>,
    /// Of the queue towards the client, in bytes.
    pub(crate) down_queue: Option<u64>,
}

/// The paths of networks of all folders.
#[derive(Clone, Debug, Default)]
pub(crate) struct Networks(Vec<Block>);

/// The networks of a folder.
#[derive(Clone, Debug)]
struct Block {
    /// The folder's own fields.
    fixed: Vec<(usize, String)>,
    /// Positions of the fields that change networks, as in a sweep over rates.
    fields: Vec<usize>,
    /// Paths by name of the network and values of these fields.
    paths: BTreeMap<(String, Vec<String>), Vec<NetworkPath>>,
}

/// Paths that are kept.
const MOST: usize = 100_000;

impl Networks {
    /// The paths of the network at `place`; `None` if they are unknown.
    pub(crate) fn at(&self, place: &Place) -> Option<&[NetworkPath]> {
        let value = |field: &usize| place.fields.get(*field).map(String::as_str);
        let is = |block: &&Block| {
            block.fixed.iter().all(|(field, there)| value(field) == Some(there.as_str()))
        };
        self.0.iter().filter(is).find_map(|block| {
            let values = block.fields.iter().filter_map(value).map(str::to_owned).collect();
            block.paths.get(&(place.network.clone(), values)).map(Vec::as_slice)
        })
    }

    /// Whether the field at this position changes networks.
    pub(crate) fn changes(&self, field: usize) -> bool {
        self.0.iter().any(|block| block.fields.contains(&field))
    }

    /// Names of networks, with the values of fields that change them, and their paths; each once.
    pub(crate) fn all(&self) -> BTreeMap<String, &[NetworkPath]> {
        let blocks = self.0.iter().flat_map(|block| &block.paths);
        let name = |name: &str, values: &[String]| match values {
            [] => name.to_owned(),
            values => format!("{name} ({})", values.join(", ")),
        };
        blocks.map(|((network, values), paths)| (name(network, values), paths.as_slice())).collect()
    }

    /// Adds the networks of `folder`, whose rows are in `results`.
    pub(crate) fn read(&mut self, folder: &Folder<'_>, results: &Results, notices: &mut Notices) {
        let Some(mut rows) = Rows::open(folder.path, folder.label, "networks.csv", notices) else {
            return;
        };
        let columns = ["network", "name", "down_rate_bit_per_s", "round_trip_ns"];
        let Some([network, name, down, trip]) = rows.need(columns, notices) else { return };
        let [up, loss, queue] = ["up_rate_bit_per_s", "down_loss_ppm", "down_queue_bytes"]
            .map(|column| rows.find(column));
        let position = |field: &str| results.fields.iter().position(|known| known == field);
        let fields = results.fields.iter().enumerate();
        let fields = fields.filter_map(|(at, field)| Some((at, rows.find(field)?)));
        let (fields, columns): (Vec<usize>, Vec<usize>) = fields.unzip();
        let fixed = folder.fixed.iter();
        let fixed = fixed.filter_map(|(field, value)| Some((position(field)?, value.clone())));
        let mut block = Block { fixed: fixed.collect(), fields, paths: BTreeMap::new() };
        let mut count = 0;
        while count < MOST && rows.next() {
            count += 1;
            let number = |column: Option<usize>| match column {
                Some(column) => rows.optional(column).ok(),
                None => Some(None),
            };
            let numbers = [Some(down), up, Some(trip), loss, queue].map(number);
            let [
                Some(down_rate),
                Some(up_rate),
                Some(round_trip),
                Some(down_loss),
                Some(down_queue),
            ] = numbers
            else {
                continue;
            };
            let name = clean(&rows.text(name));
            let path = NetworkPath { name, down_rate, up_rate, round_trip, down_loss, down_queue };
            let values = columns.iter().map(|column| clean(&rows.text(*column))).collect();
            block.paths.entry((clean(&rows.text(network)), values)).or_default().push(path);
        }
        rows.finish(notices);
        self.0.push(block);
    }
}
