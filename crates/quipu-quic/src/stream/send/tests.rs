use proptest::prelude::*;
use quipu_base::PathId;

use super::*;

const ORIGINS: [PathKey; 2] =
    [PathKey { slot: 0, id: PathId(0) }, PathKey { slot: 1, id: PathId(1) }];

fn span(start: u64, end: u64) -> Span {
    Span { start: Offset(start), end: Offset(end) }
}

fn half(written: u64, credit_end: u64) -> SendHalf {
    let mut half = SendHalf::new(Offset(credit_end));
    assert!(half.write(pattern(0, written)));
    half
}

fn pattern(start: u64, len: u64) -> Bytes {
    (start..start + len).map(|at| (at * 7 % 251) as u8).collect()
}

fn lose(half: &mut SendHalf, lost: Span, fin: bool) -> Vec<Span> {
    let mut told = Vec::new();
    half.on_lost(lost, fin, ORIGINS[0], |span| told.push(span));
    told
}

#[test]
fn skipped_bytes_become_a_hole_that_costs_no_connection_credit() {
    let mut half = half(1000, 800);
    assert_eq!(half.place(span(500, 600)), Placed { kind: Kind::Fresh, fin: false });
    assert_eq!(half.pending_from(Offset(0)), Some(Run { span: span(0, 500), class: Class::Hole }));
    assert_eq!((half.free(), half.sendable(), half.unsent()), (500, 700, 900));
    assert_eq!(half.place(span(0, 500)).kind, Kind::Fresh);
    assert_eq!((half.free(), half.sendable(), half.unsent()), (0, 200, 400));
}

#[test]
fn lost_bytes_are_sent_again_and_not_counted_as_unsent() {
    let mut half = half(300, 1000);
    half.place(span(0, 300));
    assert_eq!(lose(&mut half, span(100, 200), false), [span(100, 200)]);
    assert_eq!((half.free(), half.unsent()), (100, 0));
    let class = Class::Lost { origin: ORIGINS[0] };
    assert_eq!(half.pending_from(Offset(150)), Some(Run { span: span(150, 200), class }));
    assert_eq!(half.place(span(100, 200)).kind, Kind::Again);
}

#[test]
fn a_lost_copy_requeues_nothing_while_another_flies() {
    let mut half = half(100, 1000);
    half.place(span(0, 100));
    assert_eq!(half.place_copy(span(20, 60)).kind, Kind::Copy);
    assert_eq!(lose(&mut half, span(0, 100), false), [span(0, 20), span(60, 100)]);
    assert_eq!(lose(&mut half, span(20, 60), false), [span(20, 60)]);
}

#[test]
fn a_late_acknowledgement_takes_bytes_out_of_the_pending_ones() {
    let mut half = half(100, 1000);
    half.place(span(0, 100));
    lose(&mut half, span(0, 100), false);
    assert_eq!(half.on_acked(span(0, 100), false), 100);
    assert_eq!(half.sendable(), 0);
    assert_eq!(half.on_acked(span(0, 100), false), 0);
}

#[test]
fn fin_rides_on_the_frame_that_ends_the_stream_or_goes_alone() {
    let mut half = half(100, 1000);
    assert!(!half.place(span(0, 50)).fin);
    assert!(half.finish());
    assert!(!half.finish());
    assert!(!half.write(Bytes::from_static(b"more")));
    assert!(half.place(span(50, 100)).fin);
    half.on_acked(span(0, 50), false);
    assert_eq!(lose(&mut half, span(50, 100), true), [span(50, 100)]);
    assert!(!half.bare_fin());
    half.on_acked(span(50, 100), false);
    assert!(half.bare_fin());
    let run = half.pending_from(Offset(0)).unwrap();
    assert_eq!(run, Run { span: span(100, 100), class: Class::Fresh });
    assert_eq!(half.place(run.span), Placed { kind: Kind::Again, fin: true });
    assert!(!half.is_all_acked());
    half.on_acked(run.span, true);
    assert!(half.is_all_acked());
}

#[test]
fn a_lost_bare_fin_is_told_as_an_empty_span() {
    let mut half = half(0, 0);
    half.finish();
    assert_eq!(half.place(span(0, 0)), Placed { kind: Kind::Fresh, fin: true });
    assert_eq!(lose(&mut half, span(0, 0), true), [span(0, 0)]);
    assert!(half.bare_fin());
}

#[test]
fn acknowledged_chunks_are_dropped() {
    let mut half = half(100, 1000);
    half.write(pattern(100, 100));
    half.place(span(0, 200));
    half.on_acked(span(0, 150), false);
    assert_eq!(half.chunks.len(), 1);
    let mut buffer = [0; 50];
    assert!(half.copy_to(span(150, 200), &mut buffer));
    assert_eq!(buffer, *pattern(150, 50));
    assert!(!half.copy_to(span(99, 101), &mut buffer));
    assert!(!half.copy_to(span(150, 200), &mut buffer[..49]));
    assert!(!half.copy_to(span(199, 201), &mut buffer));
}

/// A byte of the naive model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Cell {
    sent: bool,
    acked: bool,
    class: Option<Class>,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    span: Span,
    fin: bool,
    counted: bool,
}

/// The sending half as an array of bytes and a list of frames.
#[derive(Debug, Default)]
struct Model {
    cells: Vec<Cell>,
    frames: Vec<Frame>,
    credit_end: usize,
    finished: bool,
    fin_pending: bool,
    fin_acked: bool,
    /// Placed otherwise than with a copy.
    fin_placed: bool,
}

impl Model {
    fn high_sent(&self) -> usize {
        self.cells.iter().rposition(|cell| cell.sent).map_or(0, |at| at + 1)
    }

    fn class(&self, at: usize) -> Option<Class> {
        let cell = self.cells[at];
        match cell.class {
            Some(class) => Some(class),
            None if cell.sent || at >= self.credit_end => None,
            None if at < self.high_sent() => Some(Class::Hole),
            None => Some(Class::Fresh),
        }
    }

    fn bare_fin(&self) -> bool {
        self.fin_pending && self.cells.iter().all(|cell| cell.sent && cell.class.is_none())
    }

    fn runs(&self) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for at in 0..self.cells.len() {
            let Some(class) = self.class(at) else { continue };
            let at = at as u64;
            match runs.last_mut() {
                Some(last) if last.span.end.0 == at && last.class == class => {
                    last.span.end = Offset(at + 1);
                }
                _ => runs.push(Run { span: span(at, at + 1), class }),
            }
        }
        if self.bare_fin() {
            let end = self.cells.len() as u64;
            runs.push(Run { span: span(end, end), class: Class::Fresh });
        }
        runs
    }

    fn pending_from(&self, at: u64) -> Option<Run> {
        let mut runs = self.runs().into_iter();
        let found =
            runs.find(|run| run.span.end.0 > at || (run.span.is_empty() && run.span.start.0 >= at));
        found
            .map(|run| Run { span: Span::new(run.span.start.max(Offset(at)), run.span.end), ..run })
    }

    fn pending_before(&self, at: u64) -> Option<Run> {
        let mut runs = self.runs().into_iter().rev();
        let found = runs
            .find(|run| run.span.start.0 < at || (run.span.is_empty() && run.span.start.0 <= at));
        found
            .map(|run| Run { span: Span::new(run.span.start, run.span.end.min(Offset(at))), ..run })
    }

    fn unacked_from(&self, at: u64) -> Option<Span> {
        let flies = |at: &usize| {
            let cell = self.cells[*at];
            cell.sent && !cell.acked && cell.class.is_none()
        };
        let start = (at as usize..self.cells.len()).find(flies)?;
        let end = (start..self.cells.len()).find(|at| !flies(at)).unwrap_or(self.cells.len());
        Some(span(start as u64, end as u64))
    }

    fn carried(&self, at: usize) -> bool {
        let at = Offset(at as u64);
        self.frames.iter().any(|frame| frame.counted && frame.span.contains(at))
    }

    fn place(&mut self, placed: Span, copy: bool) -> Placed {
        let bytes = placed.start.0 as usize..placed.end.0 as usize;
        let fin = self.finished && bytes.end == self.cells.len();
        let mut first_time = false;
        if !copy {
            for cell in &mut self.cells[bytes] {
                first_time |= !cell.sent;
                cell.sent = true;
                cell.class = None;
            }
            if placed.is_empty() {
                first_time = !self.fin_placed;
            }
            self.fin_pending &= !fin;
            self.fin_placed |= fin;
        }
        self.frames.push(Frame { span: placed, fin, counted: true });
        let kind = match (copy, first_time) {
            (true, _) => Kind::Copy,
            (false, true) => Kind::Fresh,
            (false, false) => Kind::Again,
        };
        Placed { kind, fin }
    }

    fn ack(&mut self, index: usize) -> u64 {
        let frame = self.frames[index];
        self.frames[index].counted = false;
        let mut newly = 0;
        for cell in &mut self.cells[frame.span.start.0 as usize..frame.span.end.0 as usize] {
            newly += u64::from(!cell.acked);
            *cell = Cell { sent: true, acked: true, class: None };
        }
        if frame.fin {
            self.fin_pending = false;
            self.fin_acked = true;
        }
        newly
    }

    fn lose(&mut self, index: usize, origin: PathKey) -> (Vec<usize>, bool) {
        let frame = self.frames[index];
        if !std::mem::replace(&mut self.frames[index].counted, false) {
            return (Vec::new(), false);
        }
        let mut requeued = Vec::new();
        for at in frame.span.start.0 as usize..frame.span.end.0 as usize {
            let cell = self.cells[at];
            if !cell.acked && cell.class.is_none() && !self.carried(at) {
                self.cells[at].class = Some(Class::Lost { origin });
                requeued.push(at);
            }
        }
        let other_fin = self.frames.iter().any(|frame| frame.counted && frame.fin);
        let fin = frame.fin && !self.fin_acked && !self.fin_pending && !other_fin;
        self.fin_pending |= fin;
        (requeued, fin)
    }

    fn all_acked(&self) -> bool {
        self.fin_acked && self.cells.iter().all(|cell| cell.acked)
    }
}

#[derive(Clone, Debug)]
enum Op {
    Write(u64),
    Finish,
    Credit(u64),
    /// Place from the pending run at or after an offset, at most so many bytes.
    Place(u64, u64),
    /// Place the end of the pending run before an offset.
    PlaceBack(u64, u64),
    Copy(u64, u64),
    /// Repeat the front of what is unacknowledged of a frame, as a probe does.
    Probe(usize),
    Ack(usize),
    Lose(usize, usize),
}

fn op() -> impl Strategy<Value = Op> {
    let at = 0u64..60;
    let len = 1u64..12;
    prop_oneof![
        2 => (0u64..15).prop_map(Op::Write),
        1 => Just(Op::Finish),
        2 => (0u64..80).prop_map(Op::Credit),
        4 => len.clone().prop_map(|len| Op::Place(0, len)),
        3 => (at.clone(), len.clone()).prop_map(|(at, len)| Op::Place(at, len)),
        2 => (at.clone(), len.clone()).prop_map(|(at, len)| Op::PlaceBack(at, len)),
        3 => (at, len).prop_map(|(at, len)| Op::Copy(at, len)),
        1 => (0usize..20).prop_map(Op::Probe),
        4 => (0usize..20).prop_map(Op::Ack),
        4 => (0usize..20, 0usize..2).prop_map(|(frame, origin)| Op::Lose(frame, origin)),
    ]
}

fn apply(op: Op, half: &mut SendHalf, model: &mut Model) -> Result<(), TestCaseError> {
    match op {
        Op::Write(len) => {
            let start = model.cells.len() as u64;
            prop_assert_eq!(half.write(pattern(start, len)), !model.finished);
            if !model.finished {
                model.cells.resize((start + len) as usize, Cell::default());
            }
        }
        Op::Finish => {
            prop_assert_eq!(half.finish(), !model.finished);
            model.fin_pending |= !model.finished;
            model.finished = true;
        }
        Op::Credit(end) => {
            prop_assert_eq!(half.set_credit(Offset(end)), end as usize > model.credit_end);
            model.credit_end = model.credit_end.max(end as usize);
        }
        Op::Place(at, len) => {
            let Some(Run { span: run, .. }) = model.pending_from(at) else { return Ok(()) };
            let span = Span::new(run.start, run.end.min(Offset(run.start.0 + len)));
            prop_assert_eq!(half.place(span), model.place(span, false));
        }
        Op::PlaceBack(at, len) => {
            let Some(Run { span: run, .. }) = model.pending_before(at) else { return Ok(()) };
            let span = Span::new(run.start.max(Offset(run.end.0.saturating_sub(len))), run.end);
            prop_assert_eq!(half.place(span), model.place(span, false));
        }
        Op::Copy(at, len) => {
            let Some(run) = model.unacked_from(at) else { return Ok(()) };
            let span = Span::new(run.start, run.end.min(Offset(run.start.0 + len)));
            prop_assert_eq!(half.place_copy(span), model.place(span, true));
        }
        Op::Probe(frame) => {
            let Some(&Frame { span: sent, fin, .. }) = model.frames.get(frame) else {
                return Ok(());
            };
            let mut bytes = sent.start.0 as usize..sent.end.0 as usize;
            let byte = bytes.find(|&at| !model.cells[at].acked);
            let end = (fin && !model.fin_acked).then_some(model.cells.len());
            let found = half.first_unacked(sent, fin);
            prop_assert_eq!(found.map(|span| span.start.0 as usize), byte.or(end));
            prop_assert_eq!(found.is_some_and(Span::is_empty), byte.is_none() && end.is_some());
            if let Some(span) = found {
                prop_assert!(span.end <= sent.end);
                prop_assert_eq!(half.place_copy(span), model.place(span, true));
            }
        }
        Op::Ack(frame) if frame < model.frames.len() => {
            let Frame { span, fin, .. } = model.frames[frame];
            prop_assert_eq!(half.on_acked(span, fin), model.ack(frame));
        }
        Op::Lose(frame, origin) if frame < model.frames.len() => {
            let Frame { span, fin, counted } = model.frames[frame];
            if !counted {
                return Ok(());
            }
            let mut told = Vec::new();
            half.on_lost(span, fin, ORIGINS[origin], |span| told.push(span));
            let (bytes, lost_fin) = model.lose(frame, ORIGINS[origin]);
            let told_bytes: Vec<usize> =
                told.iter().flat_map(|span| span.start.0 as usize..span.end.0 as usize).collect();
            prop_assert_eq!(&told_bytes, &bytes);
            let told_fin = told.iter().any(|span| span.is_empty());
            prop_assert_eq!(told_fin, lost_fin && bytes.is_empty());
        }
        Op::Ack(_) | Op::Lose(..) => {}
    }
    Ok(())
}

fn compare(half: &SendHalf, model: &Model) -> Result<(), TestCaseError> {
    let written = model.cells.len() as u64;
    let pending = |below: bool| {
        let high_sent = model.high_sent();
        let bytes = 0..if below { high_sent } else { model.cells.len() };
        bytes.filter(|&at| model.class(at).is_some()).count() as u64
    };
    prop_assert_eq!(half.written(), Offset(written));
    prop_assert_eq!(half.high_sent(), Offset(model.high_sent() as u64));
    prop_assert_eq!(half.sendable(), pending(false));
    prop_assert_eq!(half.free(), pending(true));
    let unsent = model.cells.iter().filter(|cell| !cell.sent).count() as u64;
    prop_assert_eq!(half.unsent(), unsent);
    prop_assert_eq!(half.bare_fin(), model.bare_fin());
    prop_assert_eq!(half.is_all_acked(), model.all_acked());
    let prefix = model.cells.iter().take_while(|cell| cell.acked).count() as u64;
    prop_assert_eq!(half.acked_prefix(), Offset(prefix));
    for at in 0..=written + 1 {
        prop_assert_eq!(half.pending_from(Offset(at)), model.pending_from(at), "from {}", at);
        prop_assert_eq!(half.pending_before(Offset(at)), model.pending_before(at), "to {}", at);
        prop_assert_eq!(half.unacked_from(Offset(at)), model.unacked_from(at), "at {}", at);
    }
    let kept = span(prefix, written);
    let mut buffer = vec![0; (written - prefix) as usize];
    prop_assert!(half.copy_to(kept, &mut buffer));
    prop_assert_eq!(&buffer[..], &pattern(prefix, written - prefix)[..]);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn behaves_like_an_array_of_bytes(ops in prop::collection::vec(op(), 1..80)) {
        let mut half = SendHalf::new(Offset(10));
        let mut model = Model { credit_end: 10, ..Model::default() };
        for op in ops {
            apply(op, &mut half, &mut model)?;
            compare(&half, &model)?;
        }
    }
}

#[test]
fn everything_is_delivered_once_all_that_was_written_and_the_end_are_acknowledged() {
    let mut half = half(300, 1000);
    assert!(!half.is_all_delivered(), "nothing was sent");
    half.place(span(0, 300));
    assert!(!half.is_all_delivered(), "it is in flight");
    half.on_acked(span(0, 200), false);
    lose(&mut half, span(200, 300), false);
    assert!(!half.is_all_delivered(), "some was lost");
    half.on_acked(span(200, 300), false);
    assert!(half.is_all_delivered(), "more may be written");
    assert!(half.finish());
    assert!(!half.is_all_delivered(), "the end is to be sent");
    half.place(span(300, 300));
    half.on_acked(span(300, 300), true);
    assert!(half.is_all_delivered());
}
