use quipu_base::Duration;

use super::*;
use crate::{PingSeries, Play, RateSeries};

fn read(format: Format, text: &str, only: Option<&str>) -> Result<Measured, ConvertError> {
    let selection = Selection { only: only.map(str::to_owned), ..Selection::default() };
    convert(&[text.to_owned()], format, &selection).map_err(|(_, error)| error)
}

fn csv(format: Format, text: &str, only: Option<&str>) -> String {
    read(format, text, only).unwrap().to_csv()
}

fn left_out(format: Format, text: &str, only: Option<&str>) -> Vec<(&'static str, usize)> {
    read(format, text, only).unwrap().left_out().collect()
}

/// Rows as they stand in the data sets.
const PAM: &str = "TIME_STAMP_x,DLtput_x,modified_tech_x,handover_status_x,TIME_STAMP_y,DLtput_y,\
                   modified_tech_y,handover_status_y,timediff\n\
                   1683991632.4,21.373,5G-mid,,1683991632.4,256.024,5G-mid,,0.5\n\
                   1683991632.9,34.846,5G-mid,,1683991632.9,262.665,5G-mid,,0.5\n\
                   1683991633.1,,5G-mid,Start,1683991632.9,262.665,5G-mid,,0.5\n\
                   1683991633.4,46.95,5G-mid,,1683991633.4,261.851,5G-mid,,0.5\n";

const IPERF: &str = "timestamp_start,timestamp_end,server,ip_protocol,transport_protocol,download,\
                     upload,priority,average_speed,download_mbps,upload_mbps\n\
                     2024-01-11 10:06:52,2024-01-11 10:06:53,s,v4,UDP,197658000,16056000,1,0,197.658,16.056\n\
                     2024-01-25 10:06:53,2024-01-25 10:06:54,s,v4,UDP,1,1,1,0,150,15\n\
                     2024-01-25 10:08:00,2024-01-25 10:08:01,s,v4,UDP,1,1,1,0,63.719,3.382\n\
                     2024-01-25 10:08:01,2024-01-25 10:08:02,s,v4,UDP,1,1,1,0,39.015,4.31\n\
                     2024-01-25 10:08:57,2024-01-25 10:08:58,s,v4,UDP,76507000,,1,0,76.507,\n";

const STARLINK_PING: &str = "timestamp_start,timestamp_end,target,ip_protocol,packet_loss,packets_send,\
                             ping_avg,ping_worst,ping_best,ping_stddev,average_speed\n\
                             2024-01-11 09:43:20,2024-01-11 09:43:45,t,v4,0.4,250,57.737,106.493,46.1,8.18,0\n\
                             2024-01-11 09:45:20,2024-01-11 09:45:45,t,v4,0.8,250,54.793,84.31,44.6,6.1,0\n";

const LUMOS: &str = "downstream_bandwidth,connection_type,signal_strength,bitrate,chunk_size,\
                     app_throughput,delivery_time,player_state,chunk_index\n\
                     50M,wifi,weak,300,15,373,0.039,steady,1\n\
                     50M,wifi,weak,300,1235,7351,0.168,buffering,2\n\
                     50M,wifi,weak,300,1401,7260,0.193,buffering,3\n\
                     50M,wifi,weak,300,1401,70260,0.02,buffering,4\n\
                     50M,wifi,weak,1200,5440,5313,1.024,buffering,5\n";

const GNETTRACK: &str = "Timestamp,Longitude,Latitude,DL_bitrate,UL_bitrate,State\n\
                         2019.12.16_13.40.04,-8.39,51.88,72,20,D\n\
                         2019.12.16_13.40.05,-8.39,51.88,0,0,I\n\
                         2019.12.16_13.40.05,-8.39,51.88,9500,8,I\n\
                         2019.12.16_13.40.06,-8.39,51.88,-,8,I\n\
                         2019.12.16_13.40.07,-8.39,51.88,0,0,I\n";

const PING: &str = "Start time: 1683987762693\n\
    [2023-05-13 10:22:42.824897] PING 192.0.2.1 (192.0.2.1) 38(66) bytes of data.\n\
    [2023-05-13 10:22:42.850000] 46 bytes from 192.0.2.1: icmp_seq=1 ttl=50 time=50 ms\n\
    [2023-05-13 10:22:43.260000] 46 bytes from 192.0.2.1: icmp_seq=3 ttl=50 time=60.5 ms\n\
    [2023-05-13 10:22:43.261000] 46 bytes from 192.0.2.1: icmp_seq=3 ttl=50 time=61.5 ms (DUP!)\n\
    \n--- 192.0.2.1 ping statistics ---\n\
    4 packets transmitted, 2 received, +1 duplicates, 50% packet loss, time 29918ms\n";

#[test]
fn rows_of_two_carriers_give_the_one_that_is_chosen() {
    let first = "time_s,mbps\n0,21.373\n0.5,34.846\n1,46.95\n";
    assert_eq!(csv(Format::Pam2025, PAM, None), first);
    assert_eq!(left_out(Format::Pam2025, PAM, Some("x")), [("rows without a rate", 1)]);
    let second = "time_s,mbps\n0,256.024\n0.5,262.665\n1,261.851\n";
    assert_eq!(csv(Format::Pam2025, PAM, Some("y")), second);
    let uplink = PAM.replace("DLtput", "ULtput");
    assert_eq!(csv(Format::Pam2025, &uplink, None), first);
    let error = read(Format::Pam2025, PAM, Some("att")).unwrap_err().to_string();
    assert!(error.starts_with("only is `att`, expected the carrier x or y"), "{error}");
}

#[test]
fn tests_of_one_day_are_strung_together() {
    let text = csv(Format::StarlinkIperf, IPERF, Some("2024-01-25"));
    let rows = "0,150,15,1\n1,63.719,3.382,2\n2,39.015,4.31,2\n";
    assert_eq!(text, format!("time_s,down_mbps,up_mbps,test\n{rows}"));
    let why = [("rows of other times", 1), ("rows without a rate", 1)];
    assert_eq!(left_out(Format::StarlinkIperf, IPERF, Some("2024-01-25")), why);
    let pings = csv(Format::StarlinkPing, STARLINK_PING, None);
    assert_eq!(pings, "time_s,rtt_ms,loss_percent,test\n0,57.737,0.4,1\n25,54.793,0.8,2\n");
    assert_eq!(
        read(Format::StarlinkPing, STARLINK_PING, None).unwrap().length(),
        Duration::from_secs(50)
    );
    let none = read(Format::StarlinkIperf, IPERF, Some("1999")).unwrap_err();
    assert_eq!(none.to_string(), "there are no measurements in it");
}

#[test]
fn chunks_stand_for_the_time_that_they_took() {
    let text = csv(Format::Lumos, LUMOS, None);
    assert_eq!(text, "time_s,mbps\n0,7.351\n0.168,7.26\n0.361,5.313\n");
    assert_eq!(read(Format::Lumos, LUMOS, None).unwrap().length(), Duration::from_millis(1_385));
    let why = [("chunks that took less than 30 ms", 1), ("chunks under 1000 kbit", 1)];
    assert_eq!(left_out(Format::Lumos, LUMOS, None), why);
}

#[test]
fn seconds_of_a_phone_are_read_once_each() {
    let text = csv(Format::GNetTrack, GNETTRACK, None);
    assert_eq!(text, "time_s,down_mbps,up_mbps\n0,0.072,0.02\n1,9.5,0.008\n3,0,0\n");
    let late = GNETTRACK.replace("13.40.07", "13.39.07");
    let why = left_out(Format::GNetTrack, &late, None);
    assert!(why.contains(&("rows with a time before that of the row before", 1)), "{why:?}");
    let error = read(Format::GNetTrack, &GNETTRACK.replace("12.16", "13.16"), None).unwrap_err();
    assert!(
        error.to_string().starts_with("line 2: `Timestamp` is `2019.13.16_13.40.04`, expected")
    );
}

#[test]
fn pings_that_are_missing_were_lost() {
    let text = csv(Format::Ping, PING, None);
    assert_eq!(text, "time_s,rtt_ms\n0,50\n0.19975,\n0.3995,60.5\n0.59925,\n");
    assert_eq!(read(Format::Ping, PING, None).unwrap().pings(), Some((4, 2)));
    assert_eq!(PingSeries::parse(&text).unwrap().pings(), (4, 2));
    let unix = "[1683987762.85] 64 bytes from a: icmp_seq=1 ttl=5 time=50.0 ms\n";
    assert_eq!(csv(Format::Ping, unix, None), "time_s,rtt_ms\n0,50\n");
    let error = read(Format::Ping, "64 bytes: icmp_seq=1 time=5 ms", None).unwrap_err();
    assert!(error.to_string().starts_with("line 1: `64 bytes: icmp_seq=1"), "{error}");
    let huge = format!("{unix}[1683987763] a: icmp_seq=18446744073709551615 time=1 ms\n");
    assert!(read(Format::Ping, &huge, None).is_ok());
}

#[test]
fn tables_of_others_take_our_form() {
    let columns = "time=at,rate=DL:kbps,up=UL:kbps".parse().unwrap();
    let selection = Selection { columns, only: None };
    let text = "at;DL;UL\n2024-01-25T10:00:00Z;1500;200\n2024-01-25T10:00:01Z;;\n".to_owned();
    let measured = convert(&[text], Format::Csv, &selection).unwrap();
    assert_eq!(measured.to_csv(), "time_s,down_mbps,up_mbps\n0,1.5,0.2\n");
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
    assert_eq!(read(Format::Csv, pointer, None).unwrap_err(), ConvertError::Pointer);
    let only = read(Format::Csv, "time_s,mbps\n0,1\n", Some("x")).unwrap_err().to_string();
    assert_eq!(only, "only is `x`, expected none with this format");
}

/// The recordings that ship in both forms.
#[test]
fn rates_become_the_opportunities_that_ship_and_back() {
    let text = include_str!("../../traces/us-drive-08/att.down.csv");
    let shipped = include_str!("../../traces/us-drive-08/att.down");
    let measured = read(Format::Csv, text, None).unwrap();
    let written = measured.to_mahimahi(Direction::Down).unwrap();
    let times = |text: &str| -> Vec<u64> { text.lines().map(|it| it.parse().unwrap()).collect() };
    let (written, shipped) = (times(&written), times(shipped));
    assert!(written.len().abs_diff(shipped.len()) <= 1, "{} {}", written.len(), shipped.len());
    let apart = written.iter().zip(&shipped).map(|(one, other)| one.abs_diff(*other)).max();
    assert!(apart <= Some(1), "{apart:?}");

    let lines: Vec<String> = written.iter().map(u64::to_string).collect();
    let back = read(Format::Mahimahi, &lines.join("\n"), None).unwrap().to_csv();
    let back = RateSeries::parse(&back, "mbps").unwrap();
    let series = RateSeries::parse(text, "mbps").unwrap();
    let means = [&back, &series].map(|series| series.mean_rate().bits_per_sec() / 10_000);
    assert!(means[0].abs_diff(means[1]) <= 2, "{means:?}");
    assert_eq!(back.length(), series.length());
    let _ = series.timeline(Play::default());
}

#[test]
fn an_outage_at_the_end_keeps_its_length() {
    let measured = read(Format::Csv, "time_s,mbps\n0,12\n0.003,0\n0.006,0\n", None).unwrap();
    assert_eq!(measured.to_mahimahi(Direction::Up).unwrap(), "1\n2\n3\n9\n");
    let nothing = read(Format::Csv, "time_s,rtt_ms\n0,12\n", None).unwrap();
    let error = nothing.to_mahimahi(Direction::Up).unwrap_err().to_string();
    assert_eq!(error, "there are no rates of that direction in it");
    let much = read(Format::Csv, "time_s,mbps\n0,18446744073709\n9,1\n", None).unwrap();
    assert_eq!(much.to_mahimahi(Direction::Up), Err(ConvertError::TooLong));
}
