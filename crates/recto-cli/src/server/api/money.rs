//! What calls cost, with and without what was decided: those that were made, and those that could have been.

use super::asked::{Asked, json, limited};
use super::problem::Problem;
use super::settings::{PolicyGiven, Settings, SettingsGiven};
use crate::beside::Beside;
use crate::codes::Code;
use axum::response::Response;
use recto::edit::{Change, Decision};
use recto::entry::Millis;
use recto::format::ResponseFormat;
use recto::receipt::{Overflow, Receipt};
use recto::tool::Tools;
use recto::wire::Wire;
use recto::{Log, Replay, Seq, Tokens};
use recto_engine::engine::Turned;
use recto_engine::{At, Conversation, ConversationId, Engine, ReaderName, Store};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// How many calls one page holds.
const POINTS_USUAL: usize = 1_000;
const POINTS_MAX: usize = 5_000;
/// Longer conversations are not replayed, nor more than so many at once, nor for longer.
const REPLAY_ENTRIES_MAX: u64 = 5_000;
const REPLAYS_MAX: usize = 2;
const REPLAY_TIME_MAX: Duration = Duration::from_secs(60);
/// How many entries are read at once.
const PAGE_ROWS: usize = 1_000;

/// How many replays may begin now.
#[derive(Debug)]
pub(in crate::server) struct Replays(Arc<Semaphore>);

impl Default for Replays {
    fn default() -> Replays {
        Replays(Arc::new(Semaphore::new(REPLAYS_MAX)))
    }
}

given! {
    /// Which calls.
    struct CurveGiven {
        /// The first: 0 if it is left out.
        from: Option<u64>,
        /// At most so many: 1000, up to 5000.
        limit: Option<u64>,
    }
}

given! {
    /// Under which settings; what is left out is configured.
    struct ReplayGiven {
        /// A policy by its name, or as data.
        policy: Option<PolicyGiven>,
        /// The model.
        model: Option<String>,
        /// The format it is spoken to in.
        wire: Option<Wire>,
        /// Its window in tokens; 0 is without end.
        window: Option<Tokens>,
        /// How many tokens stay free for the answer.
        reserve: Option<Tokens>,
    }
}

told! {
    /// What calls cost.
    struct Curve {
        /// The conversation.
        conversation: ConversationId,
        /// Who read.
        reader: ReaderName,
        /// The policy and the model of a replay.
        replayed: Option<Under>,
        /// The calls, in order.
        points: Vec<Point>,
        /// The sums of these points.
        total: Total,
        /// Where to go on, if there are more.
        next: Option<u64>,
        /// Whether a replay came to its end within its time.
        is_complete: bool,
    }
}

told! {
    /// Under which settings a replay was made.
    struct Under {
        /// The policy.
        policy: String,
        /// The model.
        model: String,
    }
}

told! {
    /// One call.
    struct Point {
        /// Its number; of a replay, that of the assistant message.
        turn: u64,
        /// When it was acknowledged.
        at: Option<Millis>,
        /// The newest entry when its page was made.
        head: Option<Seq>,
        /// Of a replay: the entry that answers it.
        reply: Option<Seq>,
        /// What its input cost, in tokens.
        tokens: Tokens,
        /// What it would have cost with all that was said.
        tokens_without: Tokens,
        /// How many tokens the provider's cache was expected to hold.
        cached: Tokens,
        /// What the input cost in US dollars.
        usd: f64,
        /// What it would have cost with all that was said.
        usd_without: Option<f64>,
        /// What was saved up to it, less what breaking the cache has cost.
        usd_so_far: Option<f64>,
        /// What waiting has cost, in tokens at the price of plain input.
        rent: Option<Tokens>,
        /// What would be saved at every call if it were not waited.
        waiting: Option<Tokens>,
        /// How many tokens of input the provider reported.
        reported: Option<Tokens>,
        /// What the provider's report comes to in US dollars.
        usd_billed: Option<f64>,
        /// What was decided before it.
        reductions: Reductions,
        /// Why there is no page, if it doesn't fit.
        overflow: Option<Overflow>,
    }
}

told! {
    /// What was decided before a call.
    struct Reductions {
        /// How many decisions.
        decisions: u64,
        /// How many tokens less they make, on this page and those after it.
        less: Tokens,
        /// Where the provider's cache was broken for them.
        cut: Option<Seq>,
        /// Where the floor went.
        floor: Option<Seq>,
        /// Which passes decided, and how often.
        by: BTreeMap<String, u64>,
    }
}

told! {
    /// The sums of calls.
    struct Total {
        /// How many.
        calls: u64,
        /// What their input cost, in tokens.
        tokens: Tokens,
        /// What it would have cost with all that was said.
        tokens_without: Tokens,
        /// How many tokens were expected to be cached.
        cached: Tokens,
        /// What it cost in US dollars.
        usd: f64,
        /// What it would have cost, as far as that is known of every call.
        usd_without: Option<f64>,
    }
}

impl Total {
    fn of(points: &[Point]) -> Total {
        let made = || points.iter().filter(|point| point.overflow.is_none());
        Total {
            calls: made().count() as u64,
            tokens: made().map(|point| point.tokens).sum(),
            tokens_without: made().map(|point| point.tokens_without).sum(),
            cached: made().map(|point| point.cached).sum(),
            usd: made().map(|point| point.usd).sum(),
            usd_without: made().map(|point| point.usd_without).sum(),
        }
    }
}

impl Reductions {
    /// Sums up the decisions that were made before a call.
    fn before(turn: u64, decisions: &[Decision]) -> Reductions {
        let from = decisions.partition_point(|it| it.turn.0 < turn);
        let upto = decisions.partition_point(|it| it.turn.0 <= turn);
        let own = &decisions[from..upto];
        let (mut less, mut cut, mut floor, mut by) = (Tokens(0), None, None, BTreeMap::new());
        for Decision { edit, .. } in own {
            match &edit.change {
                Change::Cut { from, .. } => cut = Some(*from),
                Change::Floor(it) => {
                    floor = Some(it.at);
                    less += edit.before - edit.after;
                }
                Change::Hide(_) | Change::Omit(_) | Change::Replace { .. } => less += edit.before - edit.after,
                _ => {}
            }
            *by.entry(edit.by.to_string()).or_default() += 1;
        }
        Reductions { decisions: own.len() as u64, less, cut, floor, by }
    }
}

impl Point {
    fn recorded(call: &Turned, decisions: &[Decision]) -> Point {
        let Turned { turn, at, totals, reported, used, ticket, .. } = call;
        // Of calls that older versions recorded it is not known what waited.
        let is_known = totals.usd_without.is_some();
        let waiting =
            |of: fn(&recto::pays::Waiting) -> Tokens| is_known.then(|| totals.waiting.as_ref().map_or(Tokens(0), of));
        Point {
            turn: *turn,
            at: Some(*at),
            head: ticket.head,
            reply: None,
            tokens: totals.tokens,
            tokens_without: totals.tokens + ticket.less,
            cached: totals.cached,
            usd: totals.usd,
            usd_without: totals.usd_without,
            usd_so_far: totals.usd_so_far,
            rent: waiting(|it| it.rent),
            waiting: waiting(|it| it.saves),
            reported: *reported,
            usd_billed: used.map(|(_, usd)| usd),
            reductions: Reductions::before(*turn, decisions),
            overflow: None,
        }
    }

    fn replayed(turn: usize, reply: Seq, receipt: &Receipt) -> Point {
        let tokens = receipt.calibration.map_or(receipt.ledger.used(), |it| it.expected);
        let (money, savings) = (&receipt.money, &receipt.savings);
        Point {
            head: receipt.ticket.head,
            tokens,
            tokens_without: tokens + savings.less,
            cached: money.cached,
            usd: money.usd,
            usd_without: Some(savings.usd_without),
            usd_so_far: Some(savings.usd_so_far),
            rent: Some(savings.waiting.map_or(Tokens(0), |it| it.rent)),
            waiting: Some(savings.waiting.map_or(Tokens(0), |it| it.saves)),
            ..Point::unmade(turn, reply)
        }
    }

    fn unmade(turn: usize, reply: Seq) -> Point {
        Point {
            turn: turn as u64,
            at: None,
            head: None,
            reply: Some(reply),
            tokens: Tokens(0),
            tokens_without: Tokens(0),
            cached: Tokens(0),
            usd: 0.0,
            usd_without: None,
            usd_so_far: None,
            rent: None,
            waiting: None,
            reported: None,
            usd_billed: None,
            reductions: Reductions::before(turn as u64, &[]),
            overflow: None,
        }
    }
}

/// Tells what recorded calls cost.
pub(super) async fn curve<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let CurveGiven { from, limit } = asked.query()?;
    let limit = limited(limit, POINTS_USUAL, POINTS_MAX)?;
    let ((at, _), reader) = (asked.conversation().await?, asked.reader()?);
    let mut calls = asked.engine().turns(&at, &reader, from.unwrap_or(0), limit + 1).await?;
    let next = calls.get(limit).map(|call| call.turn);
    calls.truncate(limit);
    let decisions = asked.engine().decisions(&at, &reader).await?;
    let points: Vec<Point> = calls.iter().map(|call| Point::recorded(call, &decisions)).collect();
    let (total, replayed) = (Total::of(&points), None);
    json(&Curve { conversation: at.conversation, reader, replayed, points, total, next, is_complete: true })
}

/// Tells what all calls of a conversation would cost.
pub(super) async fn replay<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let ReplayGiven { policy, model, wire, window, reserve } = asked.body()?;
    let given = SettingsGiven { policy: policy.as_ref(), model: model.as_deref(), wire, window, reserve };
    let settings = given.settled(asked)?;
    let ((at, conversation), reader) = (asked.conversation().await?, asked.reader()?);
    let entries = conversation.tally.sums().entries;
    if entries > REPLAY_ENTRIES_MAX {
        let detail = format!("{entries} entries; at most {REPLAY_ENTRIES_MAX} are replayed");
        return Err(Problem::of(Code::TooMuch, detail).hinting("`recto replay` takes conversations of any length"));
    }
    let crowded = || Problem::of(Code::Crowded, "too many replays run at once; wait for one");
    let seat = asked.server.replays.0.clone().try_acquire_owned().map_err(|_| crowded())?;
    let log = log_of(asked.engine(), &at, &settings).await?;
    let under = Under { policy: settings.policy.name.to_string(), model: settings.target.name.to_string() };
    let left = Left::default();
    let gone = left.0.clone();
    let done = tokio::task::spawn_blocking(move || {
        let _seat = seat;
        replayed(&log, &conversation, &settings, &gone)
    });
    let (points, is_complete) = done.await.map_err(|error| Problem::of(Code::Defect, error.to_string()))??;
    let total = Total::of(&points);
    let (replayed, next) = (Some(under), None);
    json(&Curve { conversation: at.conversation, reader, replayed, points, total, next, is_complete })
}

/// Says that nobody waits any more, once it is dropped.
#[derive(Default)]
struct Left(Arc<AtomicBool>);

impl Drop for Left {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The whole conversation, counted by the target's tokenizer.
async fn log_of<S: Store>(engine: &Engine<S>, at: &At, settings: &Settings) -> Result<Log, Problem> {
    let mut log = Log::counted_by(settings.target.tokenizer);
    let mut next = Seq(0);
    loop {
        let some = engine.read(at, next, PAGE_ROWS).await?;
        let Some(last) = some.last() else { return Ok(log) };
        next = last.seq.next();
        for entry in &some {
            log.append_at(entry.seq, entry.original().clone())?;
        }
    }
}

/// Makes all calls, as long as somebody waits for them; and whether all were made.
fn replayed(
    log: &Log,
    conversation: &Conversation,
    settings: &Settings,
    gone: &AtomicBool,
) -> Result<(Vec<Point>, bool), Problem> {
    let beside = Beside::of_meta(&conversation.meta);
    let given = beside.asked();
    let tools = (!beside.tools.is_empty()).then(|| Tools::counted(beside.tools, &settings.target.tokenizer));
    let format = given.as_ref().and_then(|given| given.format.as_deref()).map(ResponseFormat::parse).transpose()?;
    let format = format.flatten();
    let replay = Replay::new(log, &settings.policy, &settings.target).with_tools(tools.as_ref());
    let mut replay = replay.with_format(format.as_ref()).with_reserve(settings.reserve);
    let (mut points, since, mut is_complete) = (Vec::new(), Instant::now(), true);
    // The calls of a reader are those that were made, without those that had no page.
    let mut calls = Vec::new();
    for it in replay.by_ref() {
        match it.compiled {
            Ok(compiled) => {
                calls.push((points.len(), compiled.receipt.ticket.turn.0));
                points.push(Point::replayed(it.turn, it.reply, &compiled.receipt));
            }
            Err(error) => match error.overflow() {
                Some(overflow) => {
                    points.push(Point { overflow: Some(overflow.clone()), ..Point::unmade(it.turn, it.reply) });
                }
                None => return Err(error.into()),
            },
        }
        if gone.load(Ordering::Relaxed) || since.elapsed() > REPLAY_TIME_MAX {
            is_complete = false;
            break;
        }
    }
    let decisions = replay.reader().decisions();
    for (at, turn) in calls {
        points[at].reductions = Reductions::before(turn, decisions);
    }
    Ok((points, is_complete))
}
