use super::*;
use crate::columns::Columns;
use crate::{PingSeries, RateSeries};

fn named(columns: &str) -> Columns {
    columns.parse().unwrap()
}

fn read(text: &str, columns: &str) -> Result<Vec<(u64, Option<u64>)>, SeriesError> {
    let columns = named(columns);
    let kind =
        Kind { quantity: Quantity::Rate, unit: "Mbit/s", most: (u64::MAX, "any"), optional: true };
    let rate = columns.rate.clone().unwrap_or_else(|| Column::new("mbps"));
    let rows = table_read(text, &columns, &rate, &kind)?;
    Ok(rows.rows.into_iter().map(|(time, value)| (time.as_millis(), value)).collect())
}

fn table_read(
    text: &str,
    columns: &Columns,
    rate: &Column,
    kind: &Kind,
) -> Result<Rows<Option<u64>>, SeriesError> {
    super::read(&Sheet::new(text)?, columns.time.as_ref(), rate, kind)
}

fn refused(text: &str, columns: &str) -> String {
    read(text, columns).unwrap_err().to_string()
}

const USUAL: [(u64, Option<u64>); 2] = [(0, Some(1_500_000)), (500, Some(2_000_000))];

#[test]
fn files_of_other_programs_are_read_the_same() {
    for text in [
        "time_s,mbps\n0,1.5\n0.5,2\n",
        "\u{feff}time_s,mbps\r\n0,1.5\r\n0.5,2\r\n",
        "\"time_s\",\"mbps\"\n\"0\",\"1.5\"\n\"0.5\",\"2\"\n\n",
        "time_s;mbps\n0;1,5\n0,5;2\n",
        "time_s\tmbps\n0\t1.5\n0.5\t2\n",
        "\ntime_s, mbps\n 0, 1.5\n\n0.5 ,2",
        "time_s,mbps,\"place; street\"\n0,1.5,\"a, b\"\n0.5,2,\"c\"\"d\n e\"\n",
    ] {
        assert_eq!(read(text, "").unwrap(), USUAL, "{text:?}");
    }
}

#[test]
fn separators_that_may_be_either_are_refused() {
    let text = "time_s;mbps,x\n0;1,5\n";
    assert_eq!(
        refused(text, ""),
        "line 1: `,` and `;` may separate fields, expected one of them alone"
    );
    // Rows tell what the header leaves open.
    let text = "time_s;mbps;a,b\n0;1,5;3\n0,5;2;1\n1;2;1\n";
    assert_eq!(read(text, "").unwrap()[..2], USUAL);
}

#[test]
fn times_of_a_calendar_count_from_the_first_row() {
    for (text, columns) in [
        ("Timestamp,r\n1683989846.4,1.5\n1683989846.9,2\n", "time=Timestamp,rate=r"),
        ("ts,r\n1683989846400,1500\n1683989846900,2000\n", "time=ts,rate=r:kbps"),
        ("ts_ms,r\n1683989846400,1500000\n1683989846900,2000000\n", "time=ts_ms,rate=r:bps"),
        ("ts,r\n1683989846400000,1.5\n1683989846900000,2\n", "time=ts,rate=r"),
        ("at,r\n2023-05-13T10:22:42.5Z,1.5\n2023-05-13T12:22:43+02:00,2\n", "time=at,rate=r"),
        ("at,r\n2023-05-13 10:22:42.5,187.5\n2023-05-13 10:22:43,250\n", "time=at,rate=r:kB/s"),
        ("ms,r\n0,1.5\n500,2\n", "time=ms,rate=r"),
        ("t,r\n0,1.5\n500,2\n", "time=t:ms,rate=r"),
    ] {
        assert_eq!(read(text, columns).unwrap(), USUAL, "{text}");
    }
    // A recording that begins late still does.
    assert_eq!(read("time_s,mbps\n7,1\n", "").unwrap(), [(7_000, Some(1_000_000))]);
}

#[test]
fn times_that_are_none_are_refused_with_their_line() {
    let late = "line 4: `t` is 2023-05-13T10:22:41Z, expected not before the row before";
    let text = "t,mbps\r\n2023-05-13T10:22:42Z,1\r\n\r\n2023-05-13T10:22:41Z,1\r\n";
    assert_eq!(refused(text, "time=t"), late);
    let none = "line 3: `t` is `soon`, expected a date such as 2024-01-11T10:06:39Z";
    assert_eq!(refused("t,mbps\n2023-05-13T10:22:42Z,1\nsoon,1\n", "time=t"), none);
    assert!(refused("t,mbps\nsoon,1\n", "time=t").contains("expected a decimal number"));
    assert!(refused("t,mbps\n2023-02-30,1\n", "time=t:date").contains("expected a date"));
    assert!(refused("t,mbps\n1683989846,1\n1,1\n", "time=t").contains("not before"));
}

#[test]
fn columns_and_units_that_are_none_are_named() {
    let text = "Timestamp,DL_bitrate\n0,1\n";
    assert_eq!(
        refused(text, "time=Timestamp"),
        "line 1: no column `mbps`, expected it among `Timestamp`, `DL_bitrate`"
    );
    let unit = refused(text, "time=Timestamp,rate=DL_bitrate:kbts");
    assert!(unit.starts_with("`kbts` is no unit of column `DL_bitrate`, expected one of bit/s,"));
    assert_eq!(
        refused(text, "time=Timestamp,rate=DL_bitrate:ms"),
        "the unit of column `DL_bitrate` is ms, expected one of bit/s, kbit/s, Mbit/s, Gbit/s, B/s, \
         kB/s and MB/s"
    );
    let unit = refused(text, "time=Timestamp:kbps,rate=DL_bitrate");
    assert_eq!(
        unit,
        "the unit of column `Timestamp` is kbit/s, expected one of s, ms, us, ns and date"
    );
    let wide: Vec<String> = (0..200).map(|column| format!("column{column}")).collect();
    assert!(refused(&wide.join(","), "").len() < 400);
}

#[test]
fn each_direction_and_kind_has_its_columns() {
    let text = "at,DL,UL,ping,lost\n0,1000,500,0.05,0.25\n1,1000,500,,0.5\n";
    let columns = named("time=at,rate=DL:kbps,up=UL:kbps,rtt=ping:s,loss=lost:share");
    let mean = |down| RateSeries::read(text, down, &columns).unwrap().mean_rate().bits_per_sec();
    assert_eq!([mean(true), mean(false)], [1_000_000, 500_000]);
    let pings = PingSeries::read(text, &columns).unwrap();
    assert_eq!((pings.median(), pings.pings()), (Duration::from_millis(25), (2, 1)));
    let one_way = named("time=at,delay=ping:s");
    assert_eq!(PingSeries::read(text, &one_way).unwrap().median(), Duration::from_millis(50));
    let losses = crate::read_losses(text, &columns, crate::Play::default()).unwrap();
    assert_eq!(losses.value_at(quipu_base::Instant::ZERO), crate::Loss::Independent(0.25));
}
