//! Options of `quipu page record`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct RecordOptions {
    /// The page: http:// or https://
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// File for the recording; .har.gz is compressed [default: the host's name with .har]
    #[arg(long, value_name = "FILE.har")]
    pub(crate) out: Option<PathBuf>,
    /// Rates of the network, separated by commas: 2mbit, 20mbit/5mbit (down/up) or unlimited
    #[arg(long, value_name = "LIST", default_value = "unlimited")]
    pub(crate) at: String,
    /// Round trip that is added to each request, at every rate [default: none]
    #[arg(long, value_name = "TIME")]
    pub(crate) rtt: Option<String>,
    /// Loads at each rate
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) repeat: u32,
    /// Browser [default: chromium, chrome or edge, as installed]
    #[arg(long, value_name = "PATH")]
    pub(crate) chromium: Option<PathBuf>,
    /// The longest that a load may take
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) timeout: String,
    /// How long the page must be quiet after its load event until the load counts as ended
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub(crate) settle: String,
    /// Width and height of the page in pixels
    #[arg(long, value_name = "WxH", default_value = "1280x900")]
    pub(crate) viewport: String,
    /// Address in place of a host's name; may be given several times
    #[arg(long = "map", value_name = "HOST=ADDRESS")]
    pub(crate) hosts: Vec<String>,
    /// Accept certificates that no authority has signed
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Program that sets up the network in place of Chromium's throttle, called as PATH 2mbit 2mbit 40ms
    #[arg(long, value_name = "PATH")]
    pub(crate) shaper: Option<PathBuf>,
}
