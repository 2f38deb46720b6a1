//! The states of RFC 9000, sections 3.1 and 3.2, as tables: everything that can happen to a half of a
//! stream, in each of its states.

use bytes::Bytes as Chunk;
use quipu_base::PathId;
use quipu_policy::{PathKey, Span};

use super::*;
use crate::stream::fault::{StreamError, StreamFault};
use crate::stream::frames::ControlFrame;

const NOW: Instant = Instant::ZERO;
const UNI: StreamDirection = StreamDirection::Unidirectional;
const PATH: PathKey = PathKey { slot: 0, id: PathId(0) };
/// What is sent or received in one go.
const PIECE: u64 = 10;

fn streams() -> Streams {
    let mut streams = Streams::new(
        Role::Client,
        StreamLimits {
            stream_window: 1_000,
            connection_window: 1_000,
            bidirectional: 3,
            unidirectional: 3,
            cancels: CancelLimit { burst: 1_000, per_second: 33 },
            send_buffer: 1 << 20,
            unsent: 1 << 20,
        },
    );
    streams.set_peer_limits(PeerLimits {
        max_data: 1_000,
        max_stream_data_bidi_local: 1_000,
        max_stream_data_bidi_remote: 1_000,
        max_stream_data_uni: 1_000,
        max_streams_bidi: 3,
        max_streams_uni: 3,
    });
    streams
}

fn of_caller<T>(result: Result<T, StreamError>) -> Result<(), &'static str> {
    result.map(|_| ()).map_err(|error| match error {
        StreamError::NotOpen(_) => "not open",
        StreamError::Finished(_) => "finished",
        StreamError::TooLong(_) => "too long",
    })
}

fn of_peer(result: Result<(), StreamFault>) -> Result<(), &'static str> {
    result.map_err(|fault| match fault {
        StreamFault::FlowControl => "FLOW_CONTROL_ERROR",
        StreamFault::FinalSize => "FINAL_SIZE_ERROR",
        StreamFault::StreamLimit => "STREAM_LIMIT_ERROR",
        StreamFault::StreamState => "STREAM_STATE_ERROR",
        StreamFault::Cancelled => "PROTOCOL_VIOLATION",
    })
}

/// The rows of a table: what each of `events` makes of each of the states that are reached by
/// `ways`, if it is not without effect.
fn table<E: Copy + std::fmt::Debug, S>(
    ways: &[(&str, &[E])],
    events: &[E],
    new: impl Fn() -> S,
    on: impl Fn(&mut S, E) -> Result<(), &'static str>,
    state: impl Fn(&S) -> &'static str,
) -> String {
    let mut rows = String::new();
    for (name, way) in ways {
        rows += &format!("{name} by {way:?}\n");
        for &event in events {
            let mut stream = new();
            for &step in *way {
                on(&mut stream, step).expect("a way to a state");
            }
            assert_eq!(state(&stream), *name, "after {way:?}");
            let result = on(&mut stream, event);
            let after = state(&stream);
            match result {
                Err(error) => {
                    assert_eq!(after, *name, "nothing changes if it is refused");
                    rows += &format!("  {event:?}: {error}\n");
                }
                Ok(()) if after != *name => rows += &format!("  {event:?} = {after}\n"),
                Ok(()) => {}
            }
        }
    }
    println!("{rows}");
    rows
}

/// What happens to the half of a stream that we send on.
#[derive(Clone, Copy, Debug)]
enum Sending {
    Write,
    Finish,
    Reset,
    /// All that is pending leaves.
    Send,
    /// All frames that left are acknowledged.
    Acked,
    /// They are lost.
    Lost,
    /// RESET_STREAM leaves and is acknowledged.
    ResetAcked,
    /// STOP_SENDING comes.
    Stop,
    MaxStreamData,
}

struct Sender {
    streams: Streams,
    key: StreamKey,
    /// Frames that left, and whether the end was among them.
    sent: Vec<(Span, bool)>,
    ended: bool,
}

impl Sender {
    fn new() -> Self {
        let mut streams = streams();
        let id = streams.open(UNI, NOW).unwrap();
        let key = streams.key(id).unwrap();
        Sender { streams, key, sent: Vec::new(), ended: false }
    }

    fn on(&mut self, event: Sending) -> Result<(), &'static str> {
        let (streams, key) = (&mut self.streams, self.key);
        match event {
            Sending::Write => {
                of_caller(streams.write(key.id, Chunk::from(vec![1; PIECE as usize])))
            }
            Sending::Finish => of_caller(streams.finish(key.id)),
            Sending::Reset => of_caller(streams.reset(key.id, 7)),
            Sending::Send => {
                while let Ok(span) = streams.fit(key, None, Bytes::MAX) {
                    let Some(placed) = streams.place(key, span) else { break };
                    self.sent.push((span, placed.fin));
                    self.ended |= placed.fin;
                }
                Ok(())
            }
            Sending::Acked => {
                for (span, fin) in std::mem::take(&mut self.sent) {
                    streams.on_acked(key, span, fin);
                }
                Ok(())
            }
            Sending::Lost => {
                for (span, fin) in std::mem::take(&mut self.sent) {
                    streams.on_lost(key, span, fin, PATH, &mut Vec::new());
                }
                Ok(())
            }
            Sending::ResetAcked => {
                let reset =
                    |frame: &ControlFrame| matches!(frame, ControlFrame::ResetStream { .. });
                while let Some(frame) = streams.pop_frame(reset) {
                    streams.on_frame_acked(&frame);
                }
                Ok(())
            }
            Sending::Stop => of_peer(streams.on_stop_sending(key.id, 9, NOW)),
            Sending::MaxStreamData => {
                of_peer(streams.on_max_stream_data(key.id, Offset(2_000), NOW))
            }
        }
    }

    /// The state by the names of RFC 9000; both ends of the life are one.
    fn state(&self) -> &'static str {
        let Some(slot) = self.streams.slot(self.key) else { return "Recvd" };
        match &slot.send {
            SendState::Done => "Recvd",
            SendState::Resetting { .. } => "ResetSent",
            SendState::Active(_) if self.ended => "DataSent",
            SendState::Active(half) if half.high_sent() > Offset::ZERO => "Send",
            SendState::Active(_) => "Ready",
        }
    }
}

/// <https://www.rfc-editor.org/rfc/rfc9000#section-3.1>
#[test]
fn everything_that_happens_to_a_half_that_sends() {
    use Sending::*;
    let ways: [(&str, &[Sending]); 8] = [
        ("Ready", &[]),
        ("Ready", &[Write]),
        ("Ready", &[Write, Finish]),
        ("Send", &[Write, Send]),
        ("Send", &[Write, Send, Finish]),
        ("DataSent", &[Write, Finish, Send]),
        ("ResetSent", &[Write, Send, Reset]),
        ("Recvd", &[Write, Finish, Send, Acked]),
    ];
    let events = [Write, Finish, Reset, Send, Acked, Lost, ResetAcked, Stop, MaxStreamData];
    let rows = table(&ways, &events, Sender::new, Sender::on, Sender::state);
    assert_eq!(
        rows,
        "Ready by []
  Reset = ResetSent
  Stop = ResetSent
Ready by [Write]
  Reset = ResetSent
  Send = Send
  Stop = ResetSent
Ready by [Write, Finish]
  Write: finished
  Finish: finished
  Reset = ResetSent
  Send = DataSent
  Stop = ResetSent
Send by [Write, Send]
  Reset = ResetSent
  Stop = ResetSent
Send by [Write, Send, Finish]
  Write: finished
  Finish: finished
  Reset = ResetSent
  Send = DataSent
  Stop = ResetSent
DataSent by [Write, Finish, Send]
  Write: finished
  Finish: finished
  Reset = ResetSent
  Acked = Recvd
  Stop = ResetSent
ResetSent by [Write, Send, Reset]
  Write: not open
  Finish: not open
  Reset: not open
  ResetAcked = Recvd
Recvd by [Write, Finish, Send, Acked]
  Write: not open
  Finish: not open
  Reset: not open
"
    );
}

/// What happens to the half of a stream that we receive on.
#[derive(Clone, Copy, Debug)]
enum Receiving {
    /// The first bytes come.
    First,
    /// The last ones, with the end.
    Last,
    /// All bytes with the end.
    All,
    /// The end, elsewhere than in [`Receiving::Last`].
    OtherEnd,
    /// Bytes behind the end of [`Receiving::Last`].
    Behind,
    /// Bytes behind the credit.
    Beyond,
    /// RESET_STREAM with the size of [`Receiving::Last`].
    Reset,
    /// The same with a size below what came.
    ResetBelow,
    DataBlocked,
    /// The application reads all that is there.
    Read,
    /// The application wants no more.
    Stop,
}

struct Receiver {
    streams: Streams,
    id: StreamId,
}

impl Receiver {
    fn new() -> Self {
        let (mut streams, id) = (streams(), StreamId(3));
        assert!(streams.ensure_receiving(id, NOW));
        Receiver { streams, id }
    }

    fn on(&mut self, event: Receiving) -> Result<(), &'static str> {
        let (streams, id) = (&mut self.streams, self.id);
        let mut come = |from: u64, to: u64, fin| {
            let data = vec![1; (to - from) as usize];
            of_peer(streams.on_stream_frame(id, Offset(from), fin, &data, NOW))
        };
        match event {
            Receiving::First => come(0, PIECE, false),
            Receiving::Last => come(PIECE, 2 * PIECE, true),
            Receiving::All => come(0, 2 * PIECE, true),
            Receiving::OtherEnd => come(0, PIECE - 1, true),
            Receiving::Behind => come(2 * PIECE, 3 * PIECE, false),
            Receiving::Beyond => come(1_000, 1_001, false),
            Receiving::Reset => of_peer(streams.on_reset_stream(id, 5, Offset(2 * PIECE), NOW)),
            Receiving::ResetBelow => of_peer(streams.on_reset_stream(id, 5, Offset(1), NOW)),
            Receiving::DataBlocked => of_peer(streams.on_stream_data_blocked(id, NOW)),
            Receiving::Read => of_caller(streams.read(id, u64::MAX, &mut |_| {})),
            Receiving::Stop => of_caller(streams.stop_sending(id, 7)),
        }
    }

    /// The state by the names of RFC 9000; both ends of the life are one.
    fn state(&self) -> &'static str {
        let Some(number) = self.streams.slot_of(self.id) else { return "Read" };
        match &self.streams.slots[number as usize].recv {
            RecvState::Done => "Read",
            RecvState::Active(half) if half.is_stopped() => "Stopped",
            RecvState::Active(half) if half.is_all_received() => "DataRecvd",
            RecvState::Active(half) if half.final_size().is_some() => "SizeKnown",
            RecvState::Active(_) => "Recv",
        }
    }
}

/// <https://www.rfc-editor.org/rfc/rfc9000#section-3.2>
#[test]
fn everything_that_happens_to_a_half_that_receives() {
    use Receiving::*;
    let ways: [(&str, &[Receiving]); 7] = [
        ("Recv", &[]),
        ("Recv", &[First]),
        ("SizeKnown", &[Last]),
        ("DataRecvd", &[All]),
        ("Stopped", &[First, Stop]),
        ("Read", &[All, Read]),
        ("Read", &[First, Reset]),
    ];
    let events =
        [First, Last, All, OtherEnd, Behind, Beyond, Reset, ResetBelow, DataBlocked, Read, Stop];
    let rows = table(&ways, &events, Receiver::new, Receiver::on, Receiver::state);
    assert_eq!(
        rows,
        "Recv by []
  Last = SizeKnown
  All = DataRecvd
  OtherEnd = DataRecvd
  Beyond: FLOW_CONTROL_ERROR
  Reset = Read
  ResetBelow = Read
  Stop = Stopped
Recv by [First]
  Last = DataRecvd
  All = DataRecvd
  OtherEnd: FINAL_SIZE_ERROR
  Beyond: FLOW_CONTROL_ERROR
  Reset = Read
  ResetBelow: FINAL_SIZE_ERROR
  Stop = Stopped
SizeKnown by [Last]
  First = DataRecvd
  All = DataRecvd
  OtherEnd: FINAL_SIZE_ERROR
  Behind: FINAL_SIZE_ERROR
  Beyond: FINAL_SIZE_ERROR
  Reset = Read
  ResetBelow: FINAL_SIZE_ERROR
  Stop = Read
DataRecvd by [All]
  OtherEnd: FINAL_SIZE_ERROR
  Behind: FINAL_SIZE_ERROR
  Beyond: FINAL_SIZE_ERROR
  ResetBelow: FINAL_SIZE_ERROR
  Read = Read
  Stop = Read
Stopped by [First, Stop]
  Last = Read
  All = Read
  OtherEnd: FINAL_SIZE_ERROR
  Beyond: FLOW_CONTROL_ERROR
  Reset = Read
  ResetBelow: FINAL_SIZE_ERROR
  Read: not open
Read by [All, Read]
  Read: not open
  Stop: not open
Read by [First, Reset]
  Read: not open
  Stop: not open
"
    );
}
