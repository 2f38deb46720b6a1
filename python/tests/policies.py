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
            srtt = path.srtt_ns
            if srtt is not None and (least is None or srtt < least) and path.is_promising and path.is_eligible:
                fast, least = path, srtt
        if fast is None or fast is slow or fast.pto_count > 0 or slow.srtt_ns is None or least > slow.srtt_ns:
            return None
        return fast

    def waits(self, fast, slow, unsent):
        rtt_fast, rtt_slow = fast.srtt_ns, slow.srtt_ns
        delta = max(fast.rttvar_ns, slow.rttvar_ns)
        patience = self.beta if self.waiting_for == fast.id else 0.0
        if (1.0 + unsent / (fast.cwnd_bytes or 1)) * rtt_fast >= (1.0 + patience) * (rtt_slow + delta):
            self.waiting_for = None
            return False
        if unsent / (slow.cwnd_bytes or 1) * rtt_slow >= 2.0 * rtt_fast + delta:
            self.waiting_for = fast.id
            return True
        return False


class PyRr(quipu.StreamPolicy):
    """Streams take turns of a frame, in order of becoming ready."""

    def __init__(self):
        self.ring = []
        self.cursor = 0

    def on_ready(self, stream, view):
        if stream not in self.ring:
            self.ring.append(stream)

    def on_stopped(self, stream, view):
        if stream in self.ring:
            place = self.ring.index(stream)
            del self.ring[place]
            if place < self.cursor:
                self.cursor -= 1
            if self.cursor == len(self.ring):
                self.cursor = 0

    on_closed = on_stopped

    def next(self, view):
        return self.ring[self.cursor] if self.ring else None

    def on_taken(self, stream, taken, kind, view):
        if taken and self.ring and self.ring[self.cursor] == stream:
            self.cursor = (self.cursor + 1) % len(self.ring)
