use super::*;

const STATES: [State; 7] = [
    State::Fresh,
    State::Settled,
    State::Moved,
    State::Tried,
    State::Ready,
    State::Awaited,
    State::Moving,
];
const INPUTS: [Input; 11] = [
    Input::Strange,
    Input::StrangeTry,
    Input::StrangePreferred,
    Input::FromOther,
    Input::OtherPreferred,
    Input::ActiveProved,
    Input::OtherProved,
    Input::ActiveFailed,
    Input::OtherFailed,
    Input::Choose,
    Input::Rebind,
];

fn route(port: u16) -> Route {
    Route::new(([10, 0, 0, 1], 443).into(), ([10, 0, 0, 2], port).into())
}

fn leg(port: u16) -> Leg {
    Leg::new(route(port), false)
}

fn proved(port: u16) -> Leg {
    let mut leg = leg(port);
    leg.prove();
    leg
}

/// A path in that state: it uses port 1, or 2 once it moved; the other of both is the other one.
fn path_in(state: State) -> Addresses {
    let (active, other) = match state {
        State::Fresh => (leg(1), None),
        State::Settled => (proved(1), None),
        State::Moved => (leg(2), Some((Purpose::Before, proved(1)))),
        State::Tried => (proved(1), Some((Purpose::Tried, leg(2)))),
        State::Ready => (proved(1), Some((Purpose::Tried, proved(2)))),
        State::Awaited => (proved(1), Some((Purpose::Awaited, leg(2)))),
        State::Moving => (proved(1), Some((Purpose::Chosen, leg(2)))),
    };
    let other = other.map(|(purpose, leg)| (purpose, Box::new(leg)));
    let path = Addresses { other, ..Addresses::new(Instant::ZERO, active) };
    assert_eq!(path.state(), state);
    path
}

#[test]
fn every_input_in_every_state() {
    let mut table = String::new();
    for state in STATES {
        for input in INPUTS {
            let (next, action) = state.after(input);
            if (next, action) != (state, Action::None) {
                table += &format!("{state:?} + {input:?} = {next:?}, {action:?}\n");
            }
        }
    }
    println!("{table}");
    assert_eq!(
        table,
        "Fresh + Strange = Fresh, Replace
Fresh + StrangeTry = Fresh, Replace
Fresh + ActiveProved = Settled, Settle
Fresh + ActiveFailed = Fresh, GiveUp
Fresh + Choose = Fresh, Refuse
Fresh + Rebind = Fresh, Replace
Settled + Strange = Moved, Move
Settled + StrangeTry = Tried, Try
Settled + StrangePreferred = Awaited, Await
Settled + Choose = Moving, Choose
Settled + Rebind = Moved, Move
Moved + Strange = Moved, Replace
Moved + FromOther = Settled, Return
Moved + ActiveProved = Settled, Settle
Moved + ActiveFailed = Settled, Return
Moved + Choose = Moved, Refuse
Moved + Rebind = Moved, Replace
Tried + Strange = Moved, Move
Tried + StrangeTry = Tried, Try
Tried + StrangePreferred = Awaited, Await
Tried + FromOther = Moved, Follow
Tried + OtherPreferred = Awaited, Adopt
Tried + OtherProved = Ready, None
Tried + OtherFailed = Settled, Drop
Tried + Choose = Moving, Choose
Tried + Rebind = Moved, Move
Ready + Strange = Moved, Move
Ready + StrangePreferred = Awaited, Await
Ready + FromOther = Settled, Switch
Ready + OtherPreferred = Settled, Switch
Ready + OtherFailed = Settled, Drop
Ready + Choose = Moving, Choose
Ready + Rebind = Moved, Move
Awaited + Strange = Moved, Move
Awaited + StrangePreferred = Awaited, Await
Awaited + OtherProved = Settled, Switch
Awaited + OtherFailed = Settled, Drop
Awaited + Choose = Awaited, Refuse
Awaited + Rebind = Moved, Move
Moving + OtherProved = Settled, Switch
Moving + OtherFailed = Settled, Drop
Moving + Choose = Moving, Refuse
Moving + Rebind = Moved, Move
"
    );
}

/// What `on` does to the two addresses is what the table says, from every state.
#[test]
fn addresses_follow_the_table() {
    for state in STATES {
        for input in INPUTS {
            let mut path = path_in(state);
            let action = path.on(Instant::ZERO, input, Some(leg(3)));
            let ports = |path: &Addresses| {
                let other = path.other().map(|(_, leg)| leg.route.remote.port());
                (path.route().remote.port(), other)
            };
            let (active, other) = ports(&path_in(state));
            let expected = match action {
                Action::Replace => (3, other),
                Action::Move => (3, Some(active)),
                Action::Try | Action::Await | Action::Choose => (active, Some(3)),
                Action::Follow => (other.unwrap(), Some(active)),
                Action::Switch | Action::Return => (other.unwrap(), None),
                Action::Settle | Action::Drop => (active, None),
                Action::None | Action::Adopt | Action::GiveUp | Action::Refuse => (active, other),
            };
            assert_eq!(ports(&path), expected, "{state:?} + {input:?} did {action:?}");
        }
    }
}

#[test]
fn a_path_never_knows_more_than_two_addresses_and_keeps_the_last_that_was_proved() {
    let mut path = path_in(State::Settled);
    for port in 10..200 {
        let now = Instant::ZERO + Duration::from_secs(u64::from(port));
        path.on(now, Input::Strange, Some(leg(port)));
        assert_eq!(path.route(), route(port));
        assert_eq!(path.find(&route(1)), Some(Which::Other));
    }
    assert_eq!(path.on(Instant::ZERO, Input::ActiveFailed, None), Action::Return);
    assert_eq!(path.route(), route(1));
}

#[test]
fn moves_to_strange_addresses_are_limited_and_returning_is_not() {
    let mut path = path_in(State::Settled);
    let mut moved = 0;
    for nth in 0..1000 {
        let port = 10 + nth;
        let action = path.on(Instant::ZERO, Input::Strange, Some(leg(port)));
        moved += u32::from(action == Action::Move);
        if path.state() == State::Moved {
            assert_eq!(path.on(Instant::ZERO, Input::FromOther, None), Action::Return);
        }
    }
    assert_eq!(moved, MOVES_AT_ONCE);
    let later = Instant::ZERO + MOVE_INTERVAL;
    assert_eq!(path.on(later, Input::Strange, Some(leg(9))), Action::Move);
    path.on(later, Input::FromOther, None);
    assert_eq!(path.on(later, Input::Strange, Some(leg(8))), Action::None);
    // A move of this end's own is not limited.
    assert_eq!(path.on(later, Input::Choose, Some(leg(7))), Action::Choose);
}

#[test]
fn a_datagram_counts_for_the_address_that_it_came_from() {
    let mut path = path_in(State::Tried);
    path.active = leg(1);
    path.on_received(&route(2), 100);
    path.on_received(&route(3), 100);
    assert!(path.leg(Which::Other).unwrap().amplification.allows(300));
    assert!(!path.active().amplification.allows(1));
}

#[test]
fn the_earlier_deadline_of_both_addresses_counts() {
    let mut path = path_in(State::Moved);
    assert_eq!(path.next_timeout(), None);
    let timeout = Duration::from_millis(100);
    for which in [Which::Active, Which::Other] {
        let validation = &mut path.leg_mut(which).unwrap().validation;
        validation.start();
    }
    assert!(path.wants_challenge());
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    path.active.validation.on_challenge_sent(at(10), [1; 8], true, timeout);
    let other = path.leg_mut(Which::Other).unwrap();
    other.validation.on_challenge_sent(at(0), [2; 8], true, timeout);
    assert_eq!(path.next_timeout(), Some(at(100)));
    assert!(!path.wants_challenge());
}
