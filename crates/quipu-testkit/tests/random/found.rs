//! What random trials found, shrunken; each test says what was wrong.

use quipu_base::Role::{Client, Server};
use quipu_quic::connection::CloseReason;
use quipu_testkit::trial::Direction::{Both, Down, Up};
use quipu_testkit::trial::Op::{
    Abandon, Advance, Backup, Block, Close, Control, Finish, Forge, Leap, Move, Open, OpenPath,
    Outage, Pause, Policies, Rebind, Restart, Stand, Stop, UpdateKeys, Write,
};
use quipu_testkit::trial::{Op, PathSetup, Trial};

fn keeps_the_rules(trial: Trial) {
    let outcome = trial.run();
    assert!(outcome.is_ok(), "{outcome:?}");
}

fn with_paths(paths: &[PathSetup], ops: &[Op]) -> Trial {
    Trial::new(paths.to_vec()).with_ops(ops.iter().cloned())
}

/// Bytes of control streams took the credit with which the data frame of the same packet had been
/// checked.
#[test]
fn control_streams_and_data_of_one_packet_share_the_credit() {
    let trial = with_paths(
        &[PathSetup::new(10, 10), PathSetup::new(10, 1)],
        &[
            Open(Server, false),
            Control(Server, 0),
            Write(Server, 0, 100_000),
            Open(Server, false),
            Open(Server, false),
            Write(Server, 0, 1000),
            Outage(0, Both, 0, Some(100)),
        ],
    );
    keeps_the_rules(Trial { connection_window: 50, ..trial });
}

/// The loss timer of an abandoned path fired again and again at one instant.
#[test]
fn an_abandoned_path_has_no_loss_timer() {
    keeps_the_rules(with_paths(
        &[
            PathSetup { loss: 50, ..PathSetup::new(2, 10) },
            PathSetup::new(10, 10),
            PathSetup::new(10, 1),
        ],
        &[
            Backup(Client, 1, false),
            Open(Server, false),
            Write(Server, 0, 100_000),
            Abandon(Client, 1),
            Backup(Client, 1, true),
            Stop(Client, 0),
            Advance(100),
            Abandon(Client, 0),
        ],
    ));
}

/// Keys of the phase before were dropped three probe timeouts after our update, though a peer
/// that had nothing to say still used them.
#[test]
fn a_peer_that_was_silent_after_a_key_update_is_understood() {
    keeps_the_rules(with_paths(
        &[PathSetup::new(10, 10)],
        &[UpdateKeys(Client), Open(Server, false), Advance(700)],
    ));
}

/// A server that had used up the anti-amplification limit sent no challenge and never gave the
/// path up, for the client, which had proved the path for itself, kept silent.
#[test]
fn a_path_that_the_server_cannot_prove_is_given_up() {
    let trial = with_paths(
        &[
            PathSetup { loss: 50, ..PathSetup::new(10, 40) },
            PathSetup { loss: 10, disorder: true, ..PathSetup::new(10, 10) },
        ],
        &[Outage(1, Up, 0, Some(100)), Advance(100), Outage(1, Both, 0, Some(1000))],
    );
    keeps_the_rules(trial);
}

/// A server abandoned its only proved path while the client's connection IDs for the other one
/// were lost, and could not even say so.
#[test]
fn the_last_proved_path_cannot_be_abandoned() {
    let trial = with_paths(
        &[PathSetup { loss: 50, ..PathSetup::new(2, 100) }, PathSetup::new(10, 10)],
        &[Advance(700), Outage(0, Both, 0, Some(1000)), Abandon(Server, 0)],
    );
    keeps_the_rules(Trial { begin: 0, ..trial });
}

/// With room for one datagram, an acknowledgement for two return paths went on the first of them
/// again and again.
#[test]
fn an_acknowledgement_for_two_paths_leaves_through_an_outbox_for_one() {
    let trial = with_paths(
        &[PathSetup { loss: 50, ..PathSetup::new(2, 100) }, PathSetup::new(10, 10)],
        &[Advance(700), Outage(0, Both, 0, Some(1000))],
    );
    let policies = [String::new(), "ack=min-rtt".to_owned()];
    keeps_the_rules(Trial { policies, batch: 1, begin: 0, ..trial });
}

/// When the outbox was full in the middle of leftover acknowledgements, the policies were asked
/// again, and answered otherwise.
#[test]
fn leftovers_that_wait_for_the_outbox_change_no_decision() {
    let trial = with_paths(
        &[
            PathSetup { loss: 100, ..PathSetup::new(10, 1) },
            PathSetup::new(10, 100),
            PathSetup { disorder: true, ..PathSetup::new(2, 100) },
        ],
        &[
            Open(Server, false),
            Open(Server, false),
            Open(Client, false),
            Open(Server, false),
            Open(Client, false),
            Open(Server, false),
            Policies(Server, "path=ecf".to_owned()),
            Open(Client, false),
            Advance(100),
            Write(Client, 0, 1000),
            Open(Client, true),
            Finish(Server, 2),
            Write(Client, 3, 100_000),
            Advance(10),
            Write(Client, 0, 10_000),
            Outage(1, Both, 0, Some(1000)),
            Write(Server, 0, 100_000),
            Advance(100),
            Policies(Client, "pack=many reinject=redundant ack=min-rtt".to_owned()),
            Advance(710),
        ],
    );
    let trial = Trial {
        stream_window: 20,
        connection_window: 4,
        policies: ["stream=wrr".to_owned(), String::new()],
        ..trial
    };
    let single = Trial { batch: 1, ..trial.clone() }.run();
    assert_eq!(trial.run().unwrap().trace, single.unwrap().trace);
}

/// Two ends whose acknowledgements returned on different paths asked each other for ever whether
/// those lived.
#[test]
fn checks_of_return_paths_come_to_an_end() {
    let trial = with_paths(
        &[PathSetup::new(10, 1), PathSetup::new(2, 10), PathSetup::new(10, 40)],
        &[
            Open(Client, false),
            Policies(Client, "path=single ack=min-rtt".to_owned()),
            Policies(Server, "ack=min-rtt".to_owned()),
            Open(Server, false),
            Open(Client, false),
            OpenPath(0),
            Open(Server, true),
            Write(Client, 0, 100_000),
            Open(Server, false),
            Open(Server, true),
            Abandon(Client, 3),
            Pause(Client, 0),
            Open(Server, false),
            Advance(10),
        ],
    );
    keeps_the_rules(Trial { policies: ["ack=min-rtt".to_owned(), String::new()], ..trial });
}

/// A lost probe that carried control frames too made the bytes pending that it repeated, though
/// the packet they went in was still counted upon.
#[test]
fn the_loss_of_a_probe_asks_for_nothing_that_it_repeated() {
    let trial = with_paths(
        &[PathSetup { loss: 10, ..PathSetup::new(10, 10) }],
        &[
            Advance(100),
            Open(Client, true),
            Write(Client, 0, 10_000),
            Outage(0, Down, 0, Some(1000)),
            Policies(Client, "pack=many".to_owned()),
            Advance(100),
            Open(Client, false),
            Open(Client, true),
            Advance(10),
            Advance(100),
        ],
    );
    keeps_the_rules(Trial { connection_window: 4, max_streams: 2, begin: 0, ..trial });
}

/// A stream that the peer named only to refuse it was told to the policies when it was gone.
#[test]
fn a_stream_refused_before_it_is_told_is_never_told() {
    keeps_the_rules(with_paths(&[PathSetup::new(10, 10)], &[Open(Server, false), Stop(Server, 0)]));
}

/// A client that closed before the handshake was confirmed padded its 1-RTT packet, of which the
/// policies heard although it was not among the packets in flight.
#[test]
fn a_padded_close_is_not_told_to_policies() {
    keeps_the_rules(Trial {
        begin: 50,
        ..with_paths(
            &[PathSetup::new(50, 40), PathSetup::new(50, 1)],
            &[Block(Client, 0, 1000), Advance(700), Close(Server)],
        )
    });
}

/// A translator of addresses forgets in the midst of a transfer.
#[test]
fn a_rebound_client_loses_nothing() {
    for other_host in [false, true] {
        keeps_the_rules(with_paths(
            &[PathSetup::new(10, 10)],
            &[
                Open(Client, false),
                Write(Client, 0, 100_000),
                Advance(20),
                Op::Rebind(0, other_host),
                Write(Client, 0, 100_000),
                Advance(700),
            ],
        ));
    }
}

/// After the server had discarded its Handshake keys, nothing that a client in the midst of the
/// handshake repeated showed the server that it was rebound.
#[test]
fn a_client_rebound_in_the_handshake_is_found() {
    for instant in (20..70).step_by(2) {
        for gap in [1, 11, 21] {
            let outage = Outage(0, Both, 0, Some(3_000));
            let ops = [Advance(instant), Op::Rebind(0, true), Advance(gap), outage];
            keeps_the_rules(Trial { begin: 0, ..with_paths(&[PathSetup::new(10, 20)], &ops) });
        }
    }
}

/// A link narrows in the midst of a transfer.
#[test]
fn a_link_that_narrows_loses_nothing() {
    keeps_the_rules(with_paths(
        &[PathSetup::new(10, 10)],
        &[
            Open(Client, false),
            Write(Client, 0, 100_000),
            Advance(20),
            Op::Narrow(0, 1_210),
            Write(Client, 0, 100_000),
            Advance(700),
        ],
    ));
}

/// Packets were lost while the clock leapt: the window had no room to send them again, and the probe
/// timeout of those behind them was over too.
#[test]
fn a_late_loss_timer_serves_the_probe_timeout_too() {
    let path = PathSetup { loss: 10, ..PathSetup::new(2, 10) };
    let trial = Trial::new(vec![path]).with_ops([
        Open(Server, false),
        Write(Server, 0, 100_000),
        Advance(100),
        Leap(Server, 300),
    ]);
    keeps_the_rules(trial);
}

/// A client was rebound while nothing came to it.
#[test]
fn a_client_that_is_rebound_while_it_hears_nothing_is_found() {
    let deaf = Outage(0, Down, 10, Some(3_000));
    keeps_the_rules(Trial {
        begin: 50,
        ..with_paths(
            &[
                PathSetup { loss: 100, ..PathSetup::new(50, 10) },
                PathSetup { disorder: true, ..PathSetup::new(2, 40) },
                PathSetup { disorder: true, ..PathSetup::new(10, 100) },
            ],
            &[
                deaf.clone(),
                Open(Client, false),
                Advance(10),
                Leap(Client, 5_000),
                Advance(700),
                Op::Rebind(0, false),
            ],
        )
    });
    keeps_the_rules(Trial {
        begin: 50,
        ..with_paths(
            &[
                PathSetup { loss: 100, disorder: true, ..PathSetup::new(10, 10) },
                PathSetup { loss: 10, disorder: true, ..PathSetup::new(50, 1) },
            ],
            &[
                deaf,
                Advance(100),
                Op::Rebind(0, false),
                Leap(Client, 300),
                Outage(1, Down, 10, Some(100)),
            ],
        )
    });
}

/// A client leaves the address of a path that the server has not proved yet.
#[test]
fn a_path_that_moves_while_it_opens_is_found() {
    keeps_the_rules(Trial {
        begin: 50,
        ..with_paths(
            &[
                PathSetup { loss: 50, disorder: true, ..PathSetup::new(10, 1) },
                PathSetup::new(2, 40),
            ],
            &[Advance(10), Move(1, 1, true)],
        )
    });
}

/// A path that returned to its address before had a probe timeout that was over long ago.
#[test]
fn the_probe_timeout_of_a_path_that_returns_begins_anew() {
    keeps_the_rules(Trial {
        begin: 0,
        ..with_paths(
            &[
                PathSetup::new(10, 1),
                PathSetup { loss: 10, disorder: true, ..PathSetup::new(50, 1) },
                PathSetup { loss: 50, disorder: true, ..PathSetup::new(2, 10) },
            ],
            &[
                Advance(100),
                Rebind(1, true),
                Outage(1, Down, 10, Some(3_000)),
                Move(0, 2, false),
                Advance(700),
                Block(Server, 1, 3_000),
            ],
        )
    });
}

/// A server that forgets its connection resets it as soon as the client says something. A client has no
/// token for the connection ID of its handshake.
#[test]
fn a_restarted_server_resets_its_client() {
    let ops = [Restart(Server), Open(Client, true), Write(Client, 0, 1_000), Advance(100)];
    let report = with_paths(&[PathSetup::new(10, 10)], &ops).run().unwrap();
    assert_eq!(report.closed, [Some(CloseReason::StatelessReset), None]);
}

/// Whatever comes with the keys of an end, the other stays within the rules.
#[test]
fn forged_packets_break_no_rule() {
    for role in [Client, Server] {
        for seed in 0..20 {
            let ops = [
                Open(Client, false),
                Write(Client, 0, 50_000),
                Advance(10),
                Forge(role, 20, seed),
                Advance(10),
                Forge(role, 20, seed + 100),
            ];
            keeps_the_rules(with_paths(&[PathSetup::new(10, 10), PathSetup::new(10, 1)], &ops));
        }
    }
}

/// What a client sends early arrives once, whether the server still knows it or not.
#[test]
fn early_data_arrive_once() {
    for known in [true, false] {
        for loss in [0, 100] {
            let ops = [
                Open(Client, false),
                Write(Client, 0, 10_000),
                Op::Datagrams(Client, 5, 100),
                Advance(10),
                Write(Client, 0, 10_000),
            ];
            let path = PathSetup { loss, ..PathSetup::new(10, 40) };
            keeps_the_rules(Trial { begin: 0, early: Some(known), ..with_paths(&[path], &ops) });
        }
    }
}

/// A client may end streams before the server has heard of it.
#[test]
fn streams_that_end_early_arrive() {
    for known in [true, false] {
        let path = PathSetup { up: 50, ..PathSetup::new(50, 1) };
        let trial = with_paths(&[path], &[Open(Client, false)]);
        keeps_the_rules(Trial { begin: 50, early: Some(known), ..trial });
    }
}

/// A server's clock stood while paths were measured, and acknowledgements of some came by ways of which
/// its policy takes no round-trip sample: the probe timeout stayed far too short, and each
/// acknowledgement ended its backoff, for ever.
#[test]
fn a_path_measured_as_zero_is_not_probed_for_ever() {
    let path = |mbit, delay| PathSetup::new(mbit, delay);
    let lossy = PathSetup { up: 50, loss: 100, disorder: true, ..path(50, 100) };
    let all = "path=blest resend=picoquic reinject=tail ack=all congestion=cubic";
    let ops = [
        OpenPath(0),
        OpenPath(0),
        Policies(Client, all.into()),
        Op::Stand(Server, 2_000),
        Move(2, 1, false),
    ];
    keeps_the_rules(Trial {
        stream_window: 20,
        connection_window: 4,
        max_streams: 2,
        policies: [
            "path=minrtt congestion=bbr3".into(),
            "stream=wrr resend=xquic ack=min-owd congestion=bbr3".into(),
        ],
        ack_requests: true,
        early: Some(true),
        ..with_paths(&[path(10, 40), lossy, path(10, 100)], &ops)
    });
}

/// The mock took the end of a stream for acknowledged that waited behind bytes lost after it.
#[test]
fn an_end_lost_before_other_bytes_is_seen_to_wait_behind_them() {
    let paths = [
        PathSetup { loss: 50, ..PathSetup::new(50, 1) },
        PathSetup { loss: 10, disorder: true, ..PathSetup::new(50, 40) },
        PathSetup::new(50, 100),
    ];
    let ops = [
        Advance(700),
        Rebind(2, true),
        Op::Datagrams(Server, 30, 100),
        Open(Server, false),
        Open(Server, true),
        Advance(100),
        Write(Server, 1, 10_000),
        Policies(Server, "pack=one resend=xquic reinject=redundant ack=own".into()),
        Rebind(0, true),
        Block(Server, 1, 3_000),
        Outage(0, Down, 10, Some(3_000)),
    ];
    keeps_the_rules(Trial {
        stream_window: 20,
        connection_window: 50,
        max_streams: 2,
        policies: ["reinject=unprobed ack=all congestion=newreno".into(), String::new()],
        ack_requests: true,
        batch: 1,
        begin: 50,
        early: Some(false),
        drops: true,
        ..with_paths(&paths, &ops)
    });
}

/// An address was taken for not proved that had answered a challenge in a small datagram: the limit had
/// let no larger one go.
#[test]
fn an_answer_to_a_small_challenge_ends_the_anti_amplification_limit() {
    let paths = [
        PathSetup::new(50, 10),
        PathSetup::new(10, 1),
        PathSetup { loss: 10, ..PathSetup::new(2, 40) },
        PathSetup { up: 50, loss: 100, ..PathSetup::new(50, 1) },
    ];
    keeps_the_rules(Trial {
        stream_window: 20,
        max_streams: 2,
        policies: [
            "resend=first ack=min-rtt congestion=cubic".into(),
            "stream=fifo pack=one ack=all congestion=olia".into(),
        ],
        ack_requests: true,
        batch: 1,
        begin: 0,
        early: Some(false),
        ..with_paths(&paths, &[Block(Client, 0, 100), Outage(3, Up, 200, Some(10))])
    });
}

/// A server that had returned to the address before answered a challenge from the new one at last, in
/// addition to all that had gone there.
#[test]
fn a_response_that_waited_keeps_to_the_limit_of_its_address() {
    let paths = [
        PathSetup { up: 50, loss: 100, disorder: true, ..PathSetup::new(2, 40) },
        PathSetup { loss: 10, ..PathSetup::new(2, 100) },
        PathSetup { up: 50, loss: 50, ..PathSetup::new(2, 40) },
        PathSetup::new(2, 1),
    ];
    let ops =
        [Advance(700), Outage(2, Up, 200, Some(3000)), Block(Server, 3, 3000), Move(3, 2, true)];
    keeps_the_rules(Trial {
        stream_window: 3,
        connection_window: 4,
        policies: ["joint=pstream".into(), "path=stms".into()],
        early: None,
        drops: true,
        ..with_paths(&paths, &ops)
    });
}

/// A server that returned to the address before, on another host, forgot when the last probe timeout had
/// begun: the next counted from what had gone to the address that failed, and was over before it began.
/// The probe that the return asks for was forgotten too.
#[test]
fn a_probe_timeout_after_the_return_to_an_address_begins_with_the_return() {
    let paths = [
        PathSetup { up: 50, loss: 100, ..PathSetup::new(10, 40) },
        PathSetup { up: 50, loss: 100, ..PathSetup::new(50, 10) },
        PathSetup { loss: 100, disorder: true, ..PathSetup::new(50, 100) },
        PathSetup { loss: 100, disorder: true, ..PathSetup::new(50, 1) },
    ];
    let ops = [
        Block(Server, 0, 100),
        Advance(700),
        Rebind(0, false),
        Move(1, 3, true),
        Leap(Client, 300),
        Stand(Server, 300),
        Advance(700),
        Open(Server, false),
        Open(Client, false),
        Rebind(3, true),
    ];
    keeps_the_rules(Trial {
        stream_window: 6000,
        connection_window: 50,
        max_streams: 2,
        policies: [
            "path=peekaboo pack=one resend=first".into(),
            "path=minrtt pack=one ack=own".into(),
        ],
        early: None,
        drops: true,
        begin: 50,
        ..with_paths(&paths, &ops)
    });
}
