"""Policies that come with the program, written again in Python."""

import quipu


def open_path_of_least_rtt(view):
    """The open path of least smoothed round-trip time, probed paths first."""
    best, least = None, None
    for path in view.paths:
        if not (path.is_eligible and path.is_open):
            continue
        srtt = path.srtt_ns
        rank = (True, path.packets_sent) if srtt is None else (False, srtt)
        if least is None or rank < least:
            best, least = path, rank
    return best


class PyMinRtt(quipu.PathPolicy):
    """The open path of least smoothed round-trip time."""

    stays = True

    def select(self, parcel, view):
        return open_path_of_least_rtt(view)


class PyEcf(quipu.PathPolicy):
    """A slow path is used only if waiting for the fast one would not complete earlier."""

    def __init__(self, *, beta=0.25):
        self.beta = beta
        self.waiting_for = None

    def select(self, parcel, view):
        slow = open_path_of_least_rtt(view)
        if slow is None or parcel.is_lost:
            return slow
        fast = self.faster_than(slow, view)
        if fast is not None and self.waits(fast, slow, view.unsent_bytes):
            return quipu.Wait(fast.opens_by_ns, on=fast)
        return slow

    def on_path_gone(self, path, view):
        if self.waiting_for == path:
            self.waiting_for = None

    def faster_than(self, slow, view):
        fast, least = None, None
        for path in view.paths:
            if path.is_eligible and path.is_promising and path.srtt_ns is not None:
                if least is None or path.srtt_ns < least:
                    fast, least = path, path.srtt_ns
        if fast is None or fast.id == slow.id or fast.pto_count > 0:
            return None
        return fast if slow.srtt_ns is not None and least <= slow.srtt_ns else None

    def waits(self, fast, slow, unsent):
        rtt_fast, rtt_slow = float(fast.srtt_ns), float(slow.srtt_ns)
        delta = float(max(fast.rttvar_ns, slow.rttvar_ns))
        cwnd_fast, cwnd_slow = float(max(fast.cwnd_bytes, 1)), float(max(slow.cwnd_bytes, 1))
        patience = self.beta if self.waiting_for == fast.id else 0.0
        if (1.0 + unsent / cwnd_fast) * rtt_fast >= (1.0 + patience) * (rtt_slow + delta):
            self.waiting_for = None
            return False
        if unsent / cwnd_slow * rtt_slow >= 2.0 * rtt_fast + delta:
            self.waiting_for = fast.id
            return True
        return False


class PyRr(quipu.StreamPolicy):
    """Streams take turns, a packet each."""

    def __init__(self):
        self.last = -1

    def next(self, view):
        after = [stream for stream in view.streams if stream.seq > self.last]
        return (after or view.streams)[0] if view.streams else None

    def on_taken(self, stream, taken, kind, view):
        for known in view.streams:
            if known.id == stream:
                self.last = known.seq
