// SPDX-License-Identifier: MIT
//! The protocols of Prudence under the C11 memory model, explored by loom: every interleaving, and
//! every value that a load may return. A case holds in every execution, or it is a mutant, which must
//! fail for the reason it was written for. A case that holds must also have done what it is about.
//!
//!     c11 [--long] [--table] [WORD...]     words select cases by name

mod bags;
mod grace_period;
mod hazard;
mod bias;
mod machine;
#[allow(dead_code, non_camel_case_types, unused_unsafe, unused_variables)]
mod own;
mod parking;
mod per_cpu;
mod window;

use grace_period::{Cast, Flip, Reads};
use loom::sync::atomic::Ordering::*;
use machine::{plans, Place};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed as Plain};
use std::time::Instant;

static NOTED: AtomicUsize = AtomicUsize::new(0);
static EXECUTIONS: AtomicUsize = AtomicUsize::new(0);

/// What the case is about has happened in this execution.
pub fn noted() {
    NOTED.fetch_add(1, Plain);
}

#[derive(PartialEq)]
enum Expect {
    Holds,
    Breaks(&'static [&'static str]),
    Idle, // never does what it is about
}
use Expect::*;

const IN_USE: &[&str] = &["freed object in use", "Causality violation"];
const LIVE: &[&str] = &["a live object is not found"];
const FORGOTTEN: &[&str] = &["an entry is forgotten"];
const TWICE: &[&str] = &["handed out twice", "Causality violation"];

struct Case {
    name: &'static str,
    expect: Expect,
    long: bool,
    fences: usize,
    points: usize,
    run: Box<dyn Fn(&[Place]) + Send + Sync>,
}

fn gp(name: &'static str, expect: Expect, long: bool, cast: Cast, change: fn(&mut grace_period::Rules)) -> Case {
    let mut rules = grace_period::RULES;
    change(&mut rules);
    let (fences, points) = grace_period::shape(&rules, &cast);
    Case { name, expect, long, fences, points, run: Box::new(move |plan| grace_period::run(rules, cast, plan)) }
}

fn cpu(name: &'static str, expect: Expect, fences: usize, body: fn(per_cpu::Rules, &[Place]),
       change: fn(&mut per_cpu::Rules)) -> Case {
    let mut rules = per_cpu::RULES;
    change(&mut rules);
    let fences = if rules.fence { fences } else { 0 };
    Case { name, expect, long: false, fences, points: 5, run: Box::new(move |plan| body(rules, plan)) }
}

fn parks(name: &'static str, expect: Expect, change: fn(&mut parking::Rules)) -> Case {
    let mut rules = parking::RULES;
    change(&mut rules);
    Case {
        name, expect, long: false, fences: parking::fences(&rules), points: parking::points(&rules),
        run: Box::new(move |plan| parking::run(rules, plan)),
    }
}

fn names(name: &'static str, expect: Expect, change: fn(&mut hazard::Rules)) -> Case {
    let mut rules = hazard::RULES;
    change(&mut rules);
    Case {
        name, expect, long: false, fences: hazard::fences(&rules), points: hazard::POINTS,
        run: Box::new(move |plan| hazard::run(rules, plan)),
    }
}

fn holds(name: &'static str, expect: Expect, body: fn(bias::Rules, &[Place]), change: fn(&mut bias::Rules)) -> Case {
    let mut rules = bias::RULES;
    change(&mut rules);
    let fences = rules.barrier as usize;
    Case { name, expect, long: false, fences, points: bias::POINTS, run: Box::new(move |plan| body(rules, plan)) }
}

fn window(name: &'static str, expect: Expect, body: fn(window::Rules, &[Place]), change: fn(&mut window::Rules)) -> Case {
    let mut rules = window::RULES;
    change(&mut rules);
    Case { name, expect, long: false, fences: 0, points: 0, run: Box::new(move |plan| body(rules, plan)) }
}

fn bags(name: &'static str, expect: Expect, body: fn(bags::Rules), change: fn(&mut bags::Rules)) -> Case {
    let mut rules = bags::RULES;
    change(&mut rules);
    Case { name, expect, long: false, fences: 0, points: 0, run: Box::new(move |_| body(rules)) }
}

fn own(name: &'static str, expect: Expect, body: fn()) -> Case {
    Case { name, expect, long: false, fences: 0, points: 0, run: Box::new(move |_| body()) }
}

const ONE: Cast = Cast {
    sections: 1, fenced: false, closer: true, drivers: 1, flip: Flip::None, starter: false, at_once: false, repins: false,
};
const FENCED: Cast = Cast { fenced: true, ..ONE };
const TWO: Cast = Cast { closer: false, drivers: 2, ..ONE };
const STARTED: Cast = Cast { starter: true, ..ONE };
const AT_ONCE: Cast = Cast { at_once: true, ..STARTED };
const REPIN: Cast = Cast { repins: true, ..ONE };
const REPIN_FENCED: Cast = Cast { fenced: true, ..REPIN };
const REPIN_STARTED: Cast = Cast { starter: true, ..REPIN_FENCED };
const TO_FENCED: Cast = Cast { flip: Flip::ToFenced, ..ONE };
const TO_FREE: Cast = Cast { closer: false, fenced: true, flip: Flip::ToFree, ..ONE };

fn cases() -> Vec<Case> {
    vec![
        gp("one driver, fence-free", Holds, false, ONE, |_| {}),
        gp("one driver, fenced", Holds, false, FENCED, |_| {}),
        gp("a grace period that another thread starts", Holds, false, STARTED, |_| {}),
        gp("a grace period that another thread starts, fenced", Holds, false, Cast { fenced: true, ..STARTED }, |_| {}),
        gp("two drivers, fence-free", Holds, true, TWO, |_| {}),
        gp("two drivers, fenced", Holds, false, Cast { fenced: true, ..TWO }, |_| {}),
        gp("two sections, fence-free", Holds, true, Cast { sections: 2, closer: false, ..ONE }, |_| {}),
        gp("to fenced", Holds, false, TO_FENCED, |_| {}),
        gp("to fence-free", Holds, false, TO_FREE, |_| {}),
        gp("C11 alone: cookie by a fence and a load", Breaks(IN_USE), false, STARTED, |r| r.reads = Reads::Plain),
        gp("C11 alone: a driver's mode by a load", Breaks(IN_USE), false, TO_FREE, |r| r.reads = Reads::Plain),
        gp("mutant: no barrier", Breaks(IN_USE), false, ONE, |r| r.barrier = false),
        gp("mutant: cookie before detach", Breaks(IN_USE), false, STARTED, |r| r.cookie_early = true),
        gp("mutant: no fence before the cookie", Breaks(IN_USE), false, Cast { fenced: true, ..STARTED }, |r| {
            r.close_fence = false;
            r.reads = Reads::Plain;
        }),
        gp("mutant: cookie = sequence, not + 1", Breaks(IN_USE), false, ONE, |r| r.cookie_steps = 0),
        gp("mutant: goal after membarrier", Breaks(IN_USE), false, STARTED, |r| r.goal_after_barrier = true),
        gp("mutant: goal from the old value", Idle, false, Cast { closer: false, ..ONE }, |r| r.goal_old = true),
        gp("mutant: mode tested before publishing", Breaks(IN_USE), false, TO_FENCED, |r| r.mode_before_publish = true),
        gp("mutant: to fenced without the membarrier", Breaks(IN_USE), false, TO_FENCED, |r| r.switch_barrier = false),
        gp("mutant: mode read before the goal", Breaks(IN_USE), false, Cast { closer: true, starter: true, ..TO_FREE },
            |r| r.mode_before_goal = true),
        gp("at once: a reader that registers late", Holds, false, AT_ONCE, |_| {}),
        gp("at once: its own batch", Holds, false, Cast { closer: false, ..AT_ONCE }, |_| {}),
        gp("mutant: at once, registered without a fence", Breaks(IN_USE), false, AT_ONCE, |r| r.register_fence = false),
        gp("mutant: at once, slots looked at before the goal", Breaks(IN_USE), false, AT_ONCE, |r| r.slots_before_goal = true),
        gp("mutant: at once, a registered reader is not seen", Breaks(IN_USE), false, AT_ONCE, |r| r.slots_ignored = true),
        gp("to fence-free, a closer and a starter", Holds, true, Cast { closer: true, starter: true, ..TO_FREE }, |_| {}),
        gp("mutant: a barrier noted before it is made", Breaks(IN_USE), true, TWO, |r| r.note_early = true),
        gp("mutant: poll off by one", Breaks(IN_USE), false, ONE, |r| r.poll_slack = 1),
        gp("mutant: readers ignored", Breaks(IN_USE), false, ONE, |r| r.scan_ignored = true),
        gp("mutant: sequence read relaxed", Breaks(IN_USE), false, STARTED, |r| r.sequence = Relaxed),
        gp("mutant: mode read relaxed by readers", Breaks(IN_USE), false, TO_FREE, |r| r.mode = Relaxed),
        gp("mutant: exit by a relaxed store", Breaks(IN_USE), false, ONE, |r| r.exit = Relaxed),
        gp("mutant: words scanned relaxed", Breaks(IN_USE), false, ONE, |r| r.scan = Relaxed),
        gp("mutant: completed relaxed", Breaks(IN_USE), false, TWO, |r| r.complete = Relaxed),
        gp("mutant: polled relaxed", Breaks(IN_USE), true, TWO, |r| r.poll = Relaxed),
        gp("a pin that moves", Holds, false, REPIN, |_| {}),
        gp("a pin that moves, fenced", Holds, false, REPIN_FENCED, |_| {}),
        gp("a pin that moves during another thread's start, fenced", Holds, false, REPIN_STARTED, |_| {}),
        gp("mutant: a pin moves by way of 0 without a fence", Breaks(IN_USE), false, REPIN_STARTED, |r| r.repin_by_zero = true),
        gp("mutant: a pin moves to an epoch that has not begun", Breaks(IN_USE), false, REPIN_STARTED, |r| r.repin_ahead = 1),
        gp("mutant: a pointer kept after its pin has moved", Breaks(IN_USE), false, REPIN, |r| r.repin_keeps = true),
        gp("mutant: a pin moves by a relaxed store", Breaks(IN_USE), false, REPIN, |r| r.repin = Relaxed),
        gp("mutant: the newest epoch loaded relaxed", Breaks(IN_USE), false, REPIN, |r| r.repin_sequence = Relaxed),
        parks("parked while it enters", Holds, |_| {}),
        parks("parked while it enters, fenced", Holds, |r| r.fenced = true),
        parks("a parked reader enters", Holds, |r| r.parked_before = true),
        parks("a parked reader enters, fenced", Holds, |r| {
            r.parked_before = true;
            r.fenced = true;
        }),
        parks("a reader is asked to fence", Holds, |r| r.asks = true),
        parks("mutant: asked before the unlink", Breaks(IN_USE), |r| {
            r.asks = true;
            r.mark_behind_goal = false;
        }),
        parks("mutant: an answer that is not acquired", Breaks(IN_USE), |r| {
            r.asks = true;
            r.answer_acquired = false;
        }),
        parks("mutant: a reader that is asked does not fence", Breaks(IN_USE), |r| {
            r.asks = true;
            r.wake_fence = false;
        }),
        parks("mutant: parked without membarrier", Breaks(IN_USE), |r| r.barrier = false),
        parks("mutant: parked without membarrier, fenced", Breaks(IN_USE), |r| {
            r.barrier = false;
            r.fenced = true;
        }),
        parks("mutant: woken without a fence, fenced", Breaks(IN_USE), |r| {
            r.parked_before = true;
            r.fenced = true;
            r.wake_fence = false;
        }),
        parks("mutant: parked though it was touched", Breaks(IN_USE), |r| r.touch = false),
        parks("mutant: parked whatever the word says", Breaks(IN_USE), |r| r.look_at_word = false),
        parks("mutant: attention tested before publishing", Breaks(IN_USE), |r| r.late_look = false),
        names("an object that is named", Holds, |_| {}),
        names("an object that is named, fenced", Holds, |r| r.fenced = true),
        names("a name that moves up", Holds, |r| r.handed_over = true),
        names("from a section to a name", Holds, |r| r.from_section = true),
        names("from a section to a name, fenced", Holds, |r| {
            r.from_section = true;
            r.fenced = true;
        }),
        names("mutant: the link is not looked at again", Breaks(IN_USE), |r| r.look_again = false),
        names("mutant: named after the last look at the link", Breaks(IN_USE), |r| r.named_late = true),
        names("mutant: names without a barrier", Breaks(IN_USE), |r| r.barrier = false),
        names("mutant: names without a fence where readers fence", Breaks(IN_USE), |r| {
            r.fenced = true;
            r.barrier = false;
        }),
        names("mutant: a reader does not fence where readers fence", Breaks(IN_USE), |r| {
            r.fenced = true;
            r.reader_fence = false;
        }),
        names("mutant: names looked at before the barrier", Breaks(IN_USE), |r| r.names_first = true),
        names("mutant: retired before it is unlinked", Breaks(IN_USE), |r| r.unlinked_late = true),
        names("mutant: a name taken away relaxed", Breaks(IN_USE), |r| r.reset = Relaxed),
        names("mutant: names looked at relaxed", Breaks(IN_USE), |r| r.look = Relaxed),
        names("mutant: a protection moves to a slot that was looked at", Breaks(IN_USE), |r| {
            r.handed_over = true;
            r.upwards = false;
        }),
        names("mutant: a name moves up, and the lower slot is cleared relaxed", Breaks(IN_USE), |r| {
            r.handed_over = true;
            r.hand_over = Relaxed;
        }),
        names("mutant: a section left before the name is written", Breaks(IN_USE), |r| {
            r.from_section = true;
            r.leaves_first = true;
        }),
        names("mutant: names looked at before sections", Breaks(IN_USE), |r| {
            r.from_section = true;
            r.sections_last = true;
        }),
        cpu("pop and a remote owner", Holds, 1, per_cpu::pop_and_remote, |_| {}),
        cpu("a pop after an owner that has moved", Holds, 0, per_cpu::moved_owner, |_| {}),
        cpu("pop and two remote owners", Holds, 2, per_cpu::two_remotes, |_| {}),
        cpu("remote close", Holds, 1, per_cpu::remote_close, |_| {}),
        cpu("mutant: remote owner without membarrier", Breaks(TWICE), 1, per_cpu::pop_and_remote, |r| r.fence = false),
        cpu("mutant: fast path does not look at the owner", Breaks(TWICE), 1, per_cpu::pop_and_remote, |r| r.looks_at_owner = false),
        cpu("mutant: owner tested relaxed", Breaks(TWICE), 0, per_cpu::moved_owner, |r| r.owner_test = Relaxed),
        cpu("mutant: released relaxed", Breaks(TWICE), 0, per_cpu::moved_owner, |r| r.release = Relaxed),
        cpu("mutant: remote close, cookie before the CPU is owned", Breaks(IN_USE), 1, per_cpu::remote_close, |r| r.cookie_early = true),
        cpu("mutant: remote close without membarrier", Breaks(IN_USE), 1, per_cpu::remote_close, |r| r.fence = false),
        holds("a number is held, and its line claimed", Holds, bias::held, |_| {}),
        holds("a thread begins to hold a number", Holds, bias::begins, |_| {}),
        holds("a held number is taken", Holds, bias::taken, |_| {}),
        holds("mutant: begins to hold without a fence", Breaks(TWICE), bias::begins, |r| r.begin_fence = false),
        holds("mutant: looks at the number before its claim is seen", Breaks(TWICE), bias::begins, |r| r.claim_fence = false),
        holds("mutant: claimed without membarrier", Breaks(TWICE), bias::held, |r| r.barrier = false),
        holds("mutant: a number taken without membarrier", Breaks(TWICE), bias::taken, |r| r.barrier = false),
        holds("mutant: the holder tests the owner relaxed", Breaks(TWICE), bias::held, |r| r.owner_test = Relaxed),
        holds("mutant: the holder leaves relaxed", Breaks(TWICE), bias::begins, |r| {
            r.leave = Relaxed;
            r.barrier = false; // which orders it too
        }),
        holds("mutant: a claimed line is released relaxed", Breaks(TWICE), bias::held, |r| r.release = Relaxed),
        bags("Rust: a lane and a thread that closes it", Holds, bags::lane, |_| {}),
        bags("Rust: the last reader or the closer looks", Holds, bags::gate, |_| {}),
        bags("Rust: a reader leaves without a fence, and a later guard looks", Holds, bags::gate, |r| {
            r.leave_fence = false;
            r.looks_later = true;
        }),
        bags("Rust: memory without a reclaimer, and an owned guard", Holds, bags::owned, |_| {}),
        bags("mutant, Rust: a bag put back relaxed", Breaks(IN_USE), bags::lane, |r| r.put = Relaxed),
        bags("mutant, Rust: a bag taken relaxed", Breaks(IN_USE), bags::lane, |r| r.take = Relaxed),
        bags("mutant, Rust: a thread that finds the gate held counts no event", Breaks(FORGOTTEN), bags::gate, |r| r.tells = false),
        bags("mutant, Rust: the holder of the gate does not look again", Breaks(FORGOTTEN), bags::gate, |r| r.looks_again = false),
        bags("mutant, Rust: a reader leaves without a fence, and no later guard looks", Breaks(FORGOTTEN), bags::gate, |r| r.leave_fence = false),
        bags("mutant, Rust: an owned guard tells without a fence", Breaks(IN_USE), bags::owned, |r| r.tell_fence = false),
        bags("mutant, Rust: looks for owned guards without a fence", Breaks(IN_USE), bags::owned, |r| r.look_fence = false),
        own("the crate's text: a lane and a thread that closes it", Holds, own::sound::lane),
        own("the crate's text: the last reader or the closer looks", Holds, own::sound::gate),
        own("mutant, the crate's text: a bag put back relaxed", Breaks(IN_USE), own::put_relaxed::lane),
        own("mutant, the crate's text: a bag taken relaxed", Breaks(IN_USE), own::taken_relaxed::lane),
        own("mutant, the crate's text: a thread that finds the gate held counts no event", Breaks(FORGOTTEN), own::tells_nobody::gate),
        own("mutant, the crate's text: the holder of the gate does not look again", Breaks(FORGOTTEN), own::looks_once::gate),
        own("the crate's text: a reader leaves without a fence, and a later guard looks", Holds, own::sound::later),
        own("mutant, the crate's text: a reader leaves without a fence, and no later guard looks", Breaks(FORGOTTEN), own::never_looks_again::later),
        own("the crate's text: a barrier while another thread adds", Holds, own::sound::barrier),
        own("mutant, the crate's text: a bag in hand goes back after a barrier began", Breaks(FORGOTTEN), own::leaves_no_mark::barrier),
        own("mutant, the crate's text: a thread with a bag in hand is in no section", Breaks(FORGOTTEN), own::adds_outside::barrier),
        own("the crate's text: a reclaimer drains what two threads send", Holds, own::reclaimer::drains),
        own("the crate's text: a reclaimer ends while two threads send", Holds, own::reclaimer::ends),
        own("mutant, the crate's text: a value pushed relaxed", Breaks(IN_USE), own::pushed_relaxed::drains),
        own("mutant, the crate's text: values drained relaxed", Breaks(IN_USE), own::drained_relaxed::drains),
        own("mutant, the crate's text: a reclaimer that ends takes its values relaxed", Breaks(IN_USE), own::closed_relaxed::ends),
        window("a window is shown", Holds, window::grown, |_| {}),
        window("a window and a slab outside", Holds, window::outside, |_| {}),
        window("a slab goes and comes", Holds, window::regrown, |_| {}),
        window("a slab has gone", Holds, window::gone, |_| {}),
        window("mutant: a window looked at before the object's address is known", Breaks(LIVE), window::grown, |r| r.found = Relaxed),
        window("mutant: an object published relaxed", Breaks(LIVE), window::outside, |r| r.published = Relaxed),
        window("mutant: a window that moves", Breaks(&["without a slab"]), window::grown, |r| r.base_twice = true),
        window("mutant: hidden after the slab has gone", Breaks(&["a dead object"]), window::gone, |r| r.hidden_late = true),
    ]
}

/// Runs in a process of its own, which a violation ends at once (loom cannot unwind through its objects).
/// The last line that it prints is: executions, times noted, reason (empty: every plan holds).
fn explore(case: &'static Case, bound: Option<usize>) {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        finish(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    }));
    for plan in plans(case.fences, case.points) {
        let mut loom = loom::model::Builder::new();
        loom.max_branches = 10_000;
        loom.preemption_bound = bound;
        loom.check(move || {
            EXECUTIONS.fetch_add(1, Plain);
            (case.run)(&plan)
        });
    }
    finish("");
}

fn finish(reason: &str) -> ! {
    println!("\n{}\t{}\t{reason}", EXECUTIONS.load(Plain), NOTED.load(Plain));
    std::process::exit(0)
}

struct Outcome {
    executions: String,
    noted: bool,
    reason: String,
}

fn ask(case: &Case, bound: &str) -> Outcome {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program).args(["--case", case.name, "--bound", bound]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let fields: Vec<_> = text.lines().last().unwrap_or("").split('\t').map(str::to_string).collect();
    match <[String; 3]>::try_from(fields) {
        Ok([executions, noted, reason]) => Outcome { executions, noted: noted != "0", reason },
        Err(_) => Outcome {
            executions: "?".into(),
            noted: false,
            reason: format!("the explorer failed: {}", String::from_utf8_lossy(&output.stderr)),
        },
    }
}

fn judge(case: &Case, outcome: &Outcome) -> (bool, String) {
    let holds = outcome.reason.is_empty();
    match &case.expect {
        Holds if holds && !outcome.noted => (false, "holds idly".into()),
        Holds => (holds, if holds { "holds".into() } else { outcome.reason.clone() }),
        Idle if holds => (!outcome.noted, if outcome.noted { "holds" } else { "never frees" }.into()),
        Breaks(why) if !holds => {
            let found = why.iter().find(|w| outcome.reason.contains(**w));
            (found.is_some(), found.map_or(outcome.reason.clone(), |w| w.to_string()))
        }
        _ => (false, if holds { "holds".into() } else { outcome.reason.clone() }),
    }
}

/// The value behind a flag.
fn value<'a>(arguments: &'a [String], flag: &str) -> Option<&'a String> {
    arguments.iter().position(|a| a == flag).and_then(|i| arguments.get(i + 1))
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let all: &'static Vec<Case> = Box::leak(Box::new(cases()));
    let bound = value(&arguments, "--bound");
    if let Some(name) = value(&arguments, "--case") {
        let case = all.iter().find(|c| c.name == name).expect("a case of that name");
        explore(case, bound.and_then(|b| b.parse().ok()));
    }
    let has = |flag: &str| arguments.iter().any(|a| a == flag);
    let words: Vec<_> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let bound = if has("--long") { "3" } else { "2" };
    let mut failed = false;
    for case in all.iter().filter(|c| has("--long") || !c.long) {
        if !words.is_empty() && !words.iter().any(|w| case.name.contains(w.as_str())) {
            continue;
        }
        let begun = Instant::now();
        let outcome = ask(case, bound);
        let (good, verdict) = judge(case, &outcome);
        let (count, took) = (&outcome.executions, begun.elapsed().as_secs_f64());
        failed |= !good;
        if has("--table") {
            println!("| {} | {verdict} | {count} | {took:.1} |", case.name);
        } else {
            println!("{} {}: {verdict} ({count} executions, {took:.1} s)", if good { "ok  " } else { "FAIL" }, case.name);
        }
    }
    std::process::exit(failed as i32);
}
