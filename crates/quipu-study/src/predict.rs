//! How well recordings predict: a page inferred from a load at one speed is loaded at the others, beside what was
//! measured there.
//!
//! The recordings are those of `quipu page record` with several speeds. They came over TCP and TLS, the loads here do over
//! one byte stream of QUIC, whose handshake has a round trip less, which is added.

use quipu_base::{Bytes, Duration};
use quipu_lab::pages::{self, PageLoadError, Recordings};
use quipu_lab::table::{Align, Grid};
use quipu_record::stats::quantile_of_numbers;
use quipu_scenario::{HttpVersion, LinkError, LinksSpec, PathSpec, Scenario};
use quipu_web::har::HarNetwork;
use quipu_web::page::{Compute, MeasuredLoad, Page, PageError, ReadOptions, measured, read};
use rayon::prelude::*;
use thiserror::Error;

use crate::one_path::{self, LoadError};

/// The rate of a link without one: what the links of our recordings carry.
const UNLIMITED: &str = "900mbit";

/// Packets that wait in front of a link with a rate.
const QUEUE: &str = "100p";

/// UDP payload of a packet that takes as many bytes of the link as a full one of TCP, with [`IP_AND_UDP`].
const FULL_PACKET: Bytes = Bytes(1_472);

/// Bytes of the headers of IP and UDP.
const IP_AND_UDP: Bytes = Bytes(28);

/// Why nothing is predicted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PredictError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] Box<PageLoadError>),
    /// A load of the file is no page.
    #[error("page {page}: {source}")]
    Page {
        /// The page.
        page: String,
        /// Why.
        source: PageError,
    },
    /// The file has no loads to compare.
    #[error(
        "page {page} has recordings at {speeds} speeds with `_network`; expected two or more, as \
         `quipu page record --at 2mbit,20mbit --rtt 40ms` writes them"
    )]
    OneSpeed {
        /// The page.
        page: String,
        /// Speeds that it has.
        speeds: usize,
    },
    /// The network of a recording is none.
    #[error("page {page}: `_network` {network} is no path: {source}")]
    Network {
        /// The page.
        page: String,
        /// What the file says.
        network: String,
        /// Why.
        source: LinkError,
    },
    /// A load could not be made.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// What the recordings of a page at one speed say of another.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The page.
    pub page: String,
    /// The rate of the recording, as the file names it.
    pub recorded: String,
    /// The rate of the load.
    pub replayed: String,
    /// What was measured: the page time of each recording at that rate, in their mean.
    pub measured: Duration,
    /// The page time that is predicted from each recording, in their mean, with all waits as they were recorded.
    pub as_recorded: Duration,
    /// The same with as little computing as the recording allows.
    pub low: Duration,
    /// The same with what is most likely.
    pub likely: Duration,
    /// The same with as much as it allows.
    pub high: Duration,
}

impl Prediction {
    /// Predicted over measured, less one.
    pub fn error(&self, predicted: Duration) -> f64 {
        predicted.as_secs_f64() / self.measured.as_secs_f64().max(1e-9) - 1.0
    }

    /// Whether it says something of another speed than that of its recordings.
    pub fn is_of_another_speed(&self) -> bool {
        self.recorded != self.replayed
    }
}

/// The median and the 90th percentile of the errors of predictions of other speeds, without their sign: as recorded,
/// and likely.
pub fn errors(predictions: &[Prediction]) -> [(f64, f64); 2] {
    let of = |time: fn(&Prediction) -> Duration| {
        let others = predictions.iter().filter(|prediction| prediction.is_of_another_speed());
        let mut errors: Vec<f64> =
            others.map(|prediction| prediction.error(time(prediction)).abs()).collect();
        errors.sort_by(f64::total_cmp);
        let at = |per_mille| quantile_of_numbers(&errors, per_mille).unwrap_or(f64::NAN);
        (at(500), at(900))
    };
    [of(|prediction| prediction.as_recorded), of(|prediction| prediction.likely)]
}

/// The predictions as a table.
pub fn table(predictions: &[Prediction]) -> Grid {
    let titles = ["from", "at", "measured ms", "as recorded", "low", "likely", "high", "error %"];
    let columns = titles.map(|title| (title, Align::Right));
    let mut grid = Grid::new([("page", Align::Left)].into_iter().chain(columns));
    for prediction in predictions {
        let ms = |time: Duration| format!("{:.0}", time.as_secs_f64() * 1e3);
        let Prediction { page, recorded, replayed, measured, as_recorded, low, likely, high } =
            prediction;
        let [measured, as_recorded, low, shown, high] =
            [measured, as_recorded, low, likely, high].map(|time| ms(*time));
        let error = format!("{:+.1}", prediction.error(*likely) * 100.0);
        let (page, recorded, replayed) = (page.clone(), recorded.clone(), replayed.clone());
        grid.row([page, recorded, replayed, measured, as_recorded, low, shown, high, error]);
    }
    grid
}

/// How far off they are.
pub fn sentences(predictions: &[Prediction]) -> String {
    let [as_recorded, likely] = errors(predictions);
    let sentence = |(name, (median, most)): (&str, (f64, f64))| {
        format!(
            "error at other speeds, {name}: median {:.1} %, 90th percentile {:.1} %\n",
            median * 100.0,
            most * 100.0
        )
    };
    [("as recorded", as_recorded), ("likely", likely)].map(sentence).concat()
}

/// Recordings at one speed.
struct Speed<'a> {
    name: &'a str,
    rtt: Duration,
    path: PathSpec,
    loads: Vec<&'a MeasuredLoad>,
}

/// What every speed of the recordings `name`, a file or a page that comes with the program, says of every speed.
///
/// # Errors
/// If they cannot be read, or are of fewer than two speeds.
pub fn predict(name: &str) -> Result<Vec<Prediction>, PredictError> {
    let Recordings { name: page, har: file, .. } = pages::recording(name).map_err(Box::new)?;
    let of_page = |source| PredictError::Page { page: page.clone(), source };
    let loads = measured(&file).map_err(of_page)?;
    let speeds = speeds(&page, &loads)?;
    let pairs: Vec<(&Speed<'_>, &Speed<'_>)> =
        speeds.iter().flat_map(|from| speeds.iter().map(move |to| (from, to))).collect();
    let predicted = |from: &Speed<'_>, to: &Speed<'_>, compute| {
        let mut times = Vec::with_capacity(from.loads.len());
        for load in &from.loads {
            let load = Some(load.name.clone());
            let options = ReadOptions { load, compute, ..ReadOptions::default() };
            let page = read(&page, &file, &options).map_err(of_page)?.page;
            times.push(to.load(&page)?);
        }
        Ok::<Duration, PredictError>(mean(times.into_iter()))
    };
    let prediction = |&(from, to): &(&Speed<'_>, &Speed<'_>)| {
        Ok(Prediction {
            page: page.clone(),
            recorded: from.name.to_owned(),
            replayed: to.name.to_owned(),
            measured: mean(to.loads.iter().map(|load| load.page_time)),
            as_recorded: predicted(from, to, Compute::AsRecorded)?,
            low: predicted(from, to, Compute::Low)?,
            likely: predicted(from, to, Compute::Likely)?,
            high: predicted(from, to, Compute::High)?,
        })
    };
    pairs.par_iter().map(prediction).collect()
}

fn mean(times: impl ExactSizeIterator<Item = Duration>) -> Duration {
    let count = times.len().max(1);
    let sum: f64 = times.map(Duration::as_secs_f64).sum();
    Duration::from_secs_f64(sum / count as f64)
}

/// The speeds of the loads, in the order of the file.
fn speeds<'a>(page: &str, loads: &'a [MeasuredLoad]) -> Result<Vec<Speed<'a>>, PredictError> {
    let mut speeds: Vec<(&HarNetwork, Speed<'a>)> = Vec::new();
    for load in loads {
        let Some(network @ HarNetwork::Limited { down, up, rtt }) = &load.network else { continue };
        if let Some((_, speed)) = speeds.iter_mut().find(|(known, _)| *known == network) {
            speed.loads.push(load);
            continue;
        }
        let of_page = |source| PredictError::Network {
            page: page.to_owned(),
            network: format!("{down}, {up}, {rtt}"),
            source,
        };
        let (path, rtt) = path(down, up, rtt).map_err(of_page)?;
        speeds.push((network, Speed { name: down, rtt, path, loads: vec![load] }));
    }
    match speeds.len() {
        0 | 1 => Err(PredictError::OneSpeed { page: page.to_owned(), speeds: speeds.len() }),
        _ => Ok(speeds.into_iter().map(|(_, speed)| speed).collect()),
    }
}

/// The path of a recording, and its round trip.
fn path(down: &str, up: &str, rtt: &str) -> Result<(PathSpec, Duration), LinkError> {
    let both = |rate: &str| -> Result<PathSpec, LinkError> {
        let (rate, queue) = match rate {
            "unlimited" => (UNLIMITED, "unlimited"),
            rate => (rate, QUEUE),
        };
        format!("rate={rate},delay={rtt},queue={queue}").parse()
    };
    let (mut path, other) = (both(down)?, both(up)?);
    let mut round_trip = Duration::ZERO;
    if let (LinksSpec::Own(links), LinksSpec::Own(other)) = (&mut path.links, other.links) {
        round_trip = links.down.delay;
        links.up = other.up;
        for link in [&mut links.down, &mut links.up] {
            link.delay = Duration::from_nanos(round_trip.as_nanos() / 2);
        }
    }
    Ok((path, round_trip))
}

impl Speed<'_> {
    /// The page time over the path of these recordings.
    fn load(&self, page: &Page) -> Result<Duration, LoadError> {
        let mut scenario = Scenario {
            http: HttpVersion::H2Tcp.into(),
            link_overhead: IP_AND_UDP,
            ..Scenario::default()
        };
        scenario.transport.udp_payload = FULL_PACKET;
        scenario.policies.congestion = "newreno".to_owned();
        let plan = one_path::plan(page, self.path.clone(), scenario)?;
        let [page_time, ..] = one_path::load(&plan)?;
        Ok(self.rtt + Duration::from_nanos(page_time as u64))
    }
}
