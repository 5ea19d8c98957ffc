# SPDX-License-Identifier: MIT
"""Writes the findings as text."""

from . import figures

ADVICE = {
    "call": "call_rcu(head, f) where f frees one object: prudence_free_deferred(object), without a callback",
    "synchronize": "synchronize_rcu(), then free(object): prudence_free_deferred(object), without a wait",
    "barrier": "rcu_barrier() before a library is unloaded or a heap destroyed: prudence_barrier()",
    "defer": "defer_rcu(free, object): prudence_free_deferred(object); rte_rcu_qsbr_dq_enqueue: prudence_cache_free_deferred(cache, object), which refuses nothing; "
             "ck_hp_free: the same in a hazard domain",
    "reclaim": "ck_epoch_call: prudence_cache_free_deferred(cache, object) in an epoch domain",
}


def time_text(ns):
    if ns is None:
        return "–"
    for scale, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= scale:
            return f"{ns / scale:.3g} {unit}"
    return f"{ns:.0f} ns"


def bytes_text(count):
    if count is None:
        return "–"
    for scale, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if abs(count) >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:.0f} bytes"


def waits_text(waits):
    return f"median {time_text(waits['median_ns'])}, 99 % {time_text(waits['p99_ns'])}, most {time_text(waits['most_ns'])}"


def callback_lines(found):
    callbacks, behind = found["callbacks"], found["bytes"]
    if not callbacks["queued"]:
        return
    yield (f"callbacks   {callbacks['queued']:,} queued, {callbacks['called']:,} called, {callbacks['left']:,} left at the end; at most "
           f"{callbacks['most_waiting']:,} waited at once (seen every {time_text(found['slot_ns'])})")
    if callbacks["waits"]:
        yield f"            each waited: {waits_text(callbacks['waits'])}"
    if not found["bytes_seen"]:
        yield "memory      not seen: the program has a free of its own"
    elif behind["freed"]:
        yield (f"memory      at most {bytes_text(behind['most'])} hung behind them at once, {bytes_text(behind['mean'])} in the mean over time; "
               f"{bytes_text(behind['each'])} each")
    if found["untracked"]:
        yield f"            {found['untracked']:,} callbacks were not followed: more waited than the table has room for"


def lines(found, command, top=figures.TOP):
    yield f"prudence-latent: {command} (process {found['process']}), {found['seconds']:.1f} s"
    yield from callback_lines(found)
    if found["sleeps"]["calls"]:
        share = found["sleeps"]["ns"] / (found["seconds"] * 1e9)
        yield (f"updaters    slept {time_text(found['sleeps']['ns'])} in {found['sleeps']['calls']:,} calls ({100 * share:.0f} % of the time of one "
               f"thread): {waits_text(found['sleeps']['waits'])}")
    if found["deferred"] or found["refused"]:
        yield (f"deferrals   {found['deferred']:,} were taken, {found['refused']:,} refused (defer_rcu, DPDK's queues, ck_hp_free); how long each waited "
               f"is not seen")
    if found["reclaimed"]["bytes"]:
        yield f"reclaims    {bytes_text(found['reclaimed']['bytes'])} were freed within the calls of the table that wait, reclaim or defer"
    yield from place_lines(found["places"][:top], len(found["places"]))
    kinds = dict.fromkeys(place["kind"] for place in found["places"])
    yield ""
    yield "With Prudence (docs/how-to/replace-your-callback-queue.md):"
    for kind in kinds:
        if kind in ADVICE:
            yield f"  {ADVICE[kind]}"


def place_lines(places, every):
    yield ""
    yield f"{'calls':>12} {'refused':>10} {'mean wait':>10} {'longest':>10} {'freed':>10}  place"
    for place in places:
        refused = f"{place['refused']:,}" if place["refused"] else "–"
        freed = bytes_text(place["bytes"]) if place["bytes"] or place["kind"] in ("call", "reclaim") else "–"
        yield (f"{place['calls']:>12,} {refused:>10} {time_text(place['mean_ns'] or None):>10} {time_text(place['most_ns'] or None):>10} {freed:>10}  "
               f"{place['function']} in {place['place']}")
    if every > len(places):
        yield f"{'':>12} and {every - len(places)} more places (--top)"
