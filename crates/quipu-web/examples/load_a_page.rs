//! Loads a shipped page over one link of 20 Mbit/s and 40 ms round trip that carries one response
//! after another, and prints its metrics: `cargo run --example load_a_page -- wikipedia`.
//!
//! It is the smallest driver of a page load: requests out, arrivals in, deadlines kept.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;

use quipu_base::{Duration, Instant, Rate};
use quipu_web::load::{DiscoveryMode, PageLoad};
use quipu_web::metrics::Timeline;
use quipu_web::pages;

fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "wikipedia".to_owned());
    let read = pages::find(&name)?.read()?;
    print!("{}", read.report);
    let page = read.page.shared();

    let rate = Rate::from_mbit_per_sec(20);
    let round_trip = Duration::from_millis(40);
    let mut now = Instant::ZERO;
    let mut load = PageLoad::new(Arc::clone(&page), DiscoveryMode::Recorded, now);
    let mut timeline = Timeline::new(Arc::clone(&page));
    // Objects whose response is on its way, with the time of its last byte.
    let mut arriving = VecDeque::new();
    let mut link_free_at = now;
    loop {
        while let Some(id) = load.poll_request() {
            let Some(object) = page.object(id) else { continue };
            timeline.on_request(id, now);
            let bytes = object.response_bytes + object.response_header_bytes;
            link_free_at = link_free_at.max(now + round_trip + object.think_time);
            link_free_at += rate.time_for(bytes);
            arriving.push_back((link_free_at, id));
        }
        let arrival = arriving.front().map(|&(at, _)| at);
        let Some(next) = [arrival, load.poll_timeout()].into_iter().flatten().min() else { break };
        now = next;
        load.handle_timeout(now);
        while let Some(&(at, id)) = arriving.front()
            && at <= now
        {
            arriving.pop_front();
            timeline.on_complete(id, now);
            load.on_complete(id, now);
        }
    }

    let metrics = timeline.page_metrics().ok_or("the page has objects that nobody asks for")?;
    println!("\npage time     {}", metrics.page_time);
    println!("object index  {}", metrics.object_index);
    println!("byte index    {}", metrics.byte_index);
    println!("critical time {}", metrics.critical_time);
    Ok(())
}
