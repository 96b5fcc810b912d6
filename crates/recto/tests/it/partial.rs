//! A part of a log and of a reader say the same as the whole, or that something is missing.

use recto::edit::{Change, Decision};
use recto::log::{Counted, Kept, Known, Missing, Newest, Tally};
use recto::reader::{Came, KnownReader, MissingReader};
use recto::redact::Screen;
use recto::{Log, Plan, Reader, Request, Seq, Tokenizer, compile, plan};
use recto_testkit::property::for_all;
use recto_testkit::story::{Event, Story, story};
use recto_testkit::world::World;
use std::sync::Arc;

/// How often a reading may ask for more. Each round doubles what is read of a strand.
const ROUNDS_MAX: usize = 200;

/// Reads a log bit by bit, as somebody would who keeps it elsewhere.
struct Shelf<'a> {
    log: &'a Log,
    known: Known,
    page: usize,
}

impl<'a> Shelf<'a> {
    fn new(log: &'a Log) -> Shelf<'a> {
        Shelf { log, known: Known { tally: log.tally(), ..Known::default() }, page: 1 }
    }

    fn part(&self) -> Log {
        Log::partial(Arc::new(Tokenizer::Chars4), Arc::default(), self.known.clone())
    }

    fn tally_at(&self, seq: Seq) -> Tally {
        self.log.until(Some(seq)).tally()
    }

    fn copy(&self, seq: Seq) -> Option<Arc<Counted>> {
        let entry = self.log.get(seq)?;
        let (counts, findings) = (entry.counts(), Some(entry.findings().clone()));
        let kept = Kept { counts: &counts, findings };
        let copy = Counted::stored(entry.seq, entry.original().clone(), kept, &Screen::default(), &Tokenizer::Chars4)
            .expect("its own counts");
        assert_eq!((copy.digest, copy.cost), (entry.digest, entry.cost));
        Some(Arc::new(copy))
    }

    fn fetch(&mut self, missing: Missing) {
        match missing {
            Missing::Entry(seq) => match self.copy(seq) {
                Some(entry) => drop(self.known.entries.insert(seq, entry)),
                None => drop(self.known.absent.insert(seq)),
            },
            Missing::Tally(seq) => {
                let tally = self.tally_at(seq);
                self.known.tallies.insert(seq, tally);
            }
            Missing::First { strand, from } => {
                let strands = self.known.tally.strands();
                let is_it = |it: &&Counted| {
                    let (entry, strand) = (it.original(), &strands[strand]);
                    entry.section == strand.section && entry.lane == strand.lane && entry.role == strand.role
                };
                let found = self.log.back().take_while(|it| it.seq >= from).filter(is_it).last();
                self.known.firsts.insert((strand, from), found.expect("there is one").seq);
            }
            Missing::Back { strand, below } => self.fetch_back(strand, below),
        }
    }

    fn fetch_back(&mut self, strand: usize, below: Seq) {
        let tally = &self.known.tally.strands()[strand];
        let scope =
            recto::log::Scope { section: Some(tally.section.clone()), lane: Some(tally.lane), role: Some(tally.role) };
        let read = self.log.back_in(&scope).skip_while(|it| it.seq >= below).take(self.page);
        let seqs: Vec<Seq> = read.map(|it| it.seq).collect();
        let mut entries: Vec<Arc<Counted>> = seqs.iter().rev().filter_map(|seq| self.copy(*seq)).collect();
        self.known.strands.resize_with(self.known.tally.strands().len().max(strand + 1), Newest::default);
        let oldest = entries.first().expect("something was missing").seq;
        let before = oldest.0.checked_sub(1).and_then(|seq| self.tally_at(Seq(seq)).strands().get(strand).cloned());
        let newest = &mut self.known.strands[strand];
        entries.append(&mut newest.entries);
        *newest = Newest { below: before, entries };
    }
}

/// The newest floor that stands.
fn floor(reader: &Reader) -> Option<(&Decision, Seq)> {
    let live = reader.decisions().iter().rev().filter(|it| it.reverted.is_none());
    live.into_iter().find_map(|it| match &it.edit.change {
        Change::Floor(floor) => Some((it, floor.at)),
        _ => None,
    })
}

/// Reads of a reader what stands above its floor, and what else is asked for.
fn part_of(reader: &Reader, heads: &[(Option<Seq>, recto::Tokens)], missing: &[MissingReader]) -> Reader {
    let name = reader.name().clone();
    let ordinal = reader.ordinal();
    let Some((floor, at)) = floor(reader).filter(|_| !missing.contains(&MissingReader::All)) else {
        let (calls, decisions) = (heads.to_vec(), reader.decisions().to_vec());
        let known = Default::default();
        return Reader::partial(KnownReader { name, ordinal, turns: 0, calls, below: Seq(0), decisions, known });
    };
    let came = |seq: Seq| heads.partition_point(|(head, _)| *head < Some(seq));
    let turns = came(at).min(heads.len().saturating_sub(4));
    let about = missing.iter().filter_map(|it| match it {
        MissingReader::About(seq) => Some(*seq),
        MissingReader::All => None,
    });
    let about: Vec<Seq> = about.collect();
    let is_cut = |it: &&Decision| matches!(it.edit.change, Change::Cut { .. });
    let newest_cut = reader.decisions().iter().rev().find(is_cut).map(|it| it.ordinal);
    let is_read = |it: &&Decision| match &it.edit.change {
        Change::Pin(_) => true,
        Change::Cut { .. } => it.turn.0 >= turns as u64 || Some(it.ordinal) == newest_cut,
        Change::Floor(_) => it.ordinal == floor.ordinal,
        change => {
            let seq = change.seq();
            let is_expansion = matches!(change, Change::Expand { .. });
            seq >= at || about.contains(&seq) || is_expansion && it.ordinal > floor.ordinal
        }
    };
    let decisions = reader.decisions().iter().filter(is_read).cloned().collect();
    let known = about.iter().map(|&seq| {
        let first = came(seq);
        let turn = recto::edit::Turn(first as u64);
        (seq, Came { turn, head: heads.get(first).and_then(|(head, _)| *head) })
    });
    let calls = heads[turns..].to_vec();
    let known = known.collect();
    Reader::partial(KnownReader { name, ordinal, turns: turns as u64, calls, below: at, decisions, known })
}

/// Plans and compiles with parts of log and reader, until nothing is missing.
fn in_parts(world: &World, request: &Request<'_>, heads: &[(Option<Seq>, recto::Tokens)]) -> (Plan, String, usize) {
    let mut shelf = Shelf::new(&world.log);
    let mut asked: Vec<MissingReader> = Vec::new();
    for round in 0..ROUNDS_MAX {
        let (log, reader) = (shelf.part(), part_of(&world.reader, heads, &asked));
        let request = Request { log: &log, reader: &reader, ..*request };
        let planned = plan(&request).expect("the settings are right");
        let compiled = format!("{:?}", compile(&request));
        let (missing, unasked) = (log.missing(), reader.missing());
        if missing.is_empty() && unasked.is_empty() {
            return (planned, compiled, round);
        }
        asked.extend(unasked);
        missing.into_iter().for_each(|it| shelf.fetch(it));
        shelf.page *= 2;
    }
    panic!("something is missing after {ROUNDS_MAX} rounds");
}

/// Checks that every plan and page is the same from parts of log and reader as from the whole.
pub(crate) fn check(story: &Story) -> Result<(), String> {
    let mut world = World::new(story).with_notes();
    let mut heads: Vec<(Option<Seq>, recto::Tokens)> = Vec::new();
    for event in &story.events {
        let Event::Call { input, succeeds } = event else {
            world.happen(event);
            continue;
        };
        let called = world.call(input.as_ref());
        let request = world.request(called.input.as_ref());
        let whole = (plan(&request).expect("the settings are right"), format!("{:?}", compile(&request)));
        let (planned, compiled, _) = in_parts(&world, &request, &heads);
        if (&whole.0, &whole.1) != (&planned, &compiled) {
            return Err(format!("whole: {whole:?}\nparts: {planned:?}, {compiled}"));
        }
        if let (Ok(_), true) = (&called.compiled, succeeds) {
            world.acknowledge(&called);
            let ticket = &called.compiled.as_ref().expect("it was compiled").receipt.ticket;
            let head = ticket.head.max(heads.last().and_then(|(head, _)| *head));
            heads.push((head, world.reader.spared()));
        }
    }
    Ok(())
}

#[test]
fn a_part_that_misses_nothing_says_what_the_whole_says() {
    for_all(story(40), 500, check);
}

#[test]
fn a_part_says_what_it_was_asked_in_vain() {
    let mut log = Log::counted_by(Tokenizer::Chars4);
    for number in 0..10 {
        log.append(recto::Entry::user(format!("number {number}"))).expect("words");
    }
    let shelf = Shelf::new(&log);
    let part = shelf.part();
    assert_eq!((part.head(), part.len(), part.missing()), (log.head(), 10, vec![]));
    assert_eq!(part.tally(), log.tally());
    assert!(part.back().next().is_none());
    assert!(part.get(Seq(3)).is_none());
    let wanted = [Missing::Back { strand: 0, below: Seq(10) }, Missing::Entry(Seq(3))];
    assert_eq!(part.missing(), wanted);
}

#[test]
fn a_part_as_it_was_before_knows_nothing_of_what_came_later() {
    let mut log = Log::counted_by(Tokenizer::Chars4);
    for number in 0..10 {
        log.append(recto::Entry::user(format!("number {number}"))).expect("words");
    }
    let mut shelf = Shelf::new(&log);
    for it in [Missing::Entry(Seq(5)), Missing::Entry(Seq(2)), Missing::Tally(Seq(3))] {
        shelf.fetch(it);
    }
    let before = shelf.part().until(Some(Seq(3)));
    assert_eq!((before.head(), before.len()), (Some(Seq(3)), 4));
    assert!(before.get(Seq(5)).is_none() && before.get(Seq(2)).is_some());
    assert_eq!(before.missing(), []);
}
