//! The engine over a store says what the compiler says over the whole log, call by call; and says it again later.

use crate::folder::TempFolder;
use recto::{Compiled, Reader, Seq};
use recto_engine::store::memory::Memory;
use recto_engine::store::postgres::Postgres;
use recto_engine::store::sqlite::Sqlite;
use recto_engine::{Answer, Append, At, Call, Engine, Opening, Remembering, Store, Tenant};
use recto_testkit::property::for_all;
use recto_testkit::story::{Event, Story, story, story_in_blocks};
use recto_testkit::world::{Called, World};
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(work)
}

/// Does something, and something else whenever that waits for the store.
pub(crate) async fn meanwhile<T>(work: impl Future<Output = T>, mut other: impl AsyncFnMut()) -> T {
    let mut work = pin!(work);
    loop {
        match poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await {
            Poll::Ready(done) => return done,
            Poll::Pending => other().await,
        }
    }
}

/// A host that does everything twice: in a world with the whole log, and through the engine.
struct Twice<S> {
    world: World,
    engine: Engine<S>,
    at: At,
    /// Entries up to here are in the store.
    next: Seq,
    /// Decisions and reverts up to here are in the store.
    ordinal: u64,
    /// What each acknowledged call was shown.
    pages: Vec<Compiled>,
}

impl<S: Store> Twice<S> {
    async fn new(story: &Story, engine: Engine<S>, name: &str) -> Twice<S> {
        let at = At::new(&Tenant::default(), name);
        let opening = Opening { tokenizer: Some(recto::Tokenizer::Chars4), ..Opening::default() };
        engine.open(&at, opening).await.expect("it is new");
        let (next, ordinal, pages) = (Seq(0), 0, Vec::new());
        Twice { world: World::new(story), engine, at, next, ordinal, pages }
    }

    /// Lets something happen, and does the same through the engine.
    async fn happen(&mut self, event: &Event) {
        self.world.happen(event);
        let head = self.world.log.head();
        let mut new: Vec<_> = self.world.log.back().take_while(|it| it.seq >= self.next).collect();
        new.reverse();
        let entries: Vec<_> = new.iter().map(|it| it.original().clone()).collect();
        if !entries.is_empty() {
            let before = self.next.0.checked_sub(1).map(Seq);
            self.engine.append(&self.at, Append::after(before, entries)).await.expect("it follows");
        }
        self.next = head.map_or(Seq(0), Seq::next);
        self.decide().await;
    }

    /// Pins and reverts as the world's reader did.
    async fn decide(&mut self) {
        let reader = "main".into();
        let decisions = self.world.reader.decisions().to_vec();
        for it in &decisions {
            if let recto::edit::Change::Pin(span) = it.edit.change
                && it.ordinal > self.ordinal
            {
                self.engine.pin(&self.at, &reader, span).await.expect("it can be pinned");
            }
            if it.reverted.is_some_and(|revert| revert.ordinal > self.ordinal) {
                self.engine.revert(&self.at, &reader, it.ordinal).await.expect("it can be reverted");
            }
        }
        self.ordinal = self.world.reader.ordinal();
    }

    fn call(&self, called: &Called) -> Call {
        let world = &self.world;
        let request = world.request(None);
        let fragments = request.fragments.into_iter().flat_map(|it| it.list()).map(|it| it.fragment.clone());
        Call {
            run: request.run.cloned(),
            fragments: fragments.collect(),
            facts: request.facts.cloned(),
            tools: request.tools.into_iter().flat_map(|it| it.list()).map(|it| it.json.clone()).collect(),
            input: called.input.as_ref().map(|input| input.original().clone()),
            reserve: request.reserve,
            session: Some(Remembering::new("world", "", Duration::from_secs(600))),
            ..Call::new("main", world.policy.clone(), world.target.clone())
        }
    }

    async fn live(&mut self, story: &Story) -> Result<(), String> {
        for event in &story.events {
            let Event::Call { input, succeeds } = event else {
                self.happen(event).await;
                continue;
            };
            let before: Reader = self.world.reader.clone();
            let called = self.world.call(input.as_ref());
            let call = self.call(&called);
            let stored = self.engine.compile(&self.at, &call).await;
            match (&called.compiled, &stored) {
                (Ok(whole), Ok(stored)) => same(whole, stored)?,
                (Err(whole), Err(stored)) if whole.to_string() == stored.to_string() => {
                    // The world records its plan even if the page doesn't fit; the engine records nothing.
                    self.world.reader = before;
                }
                (whole, stored) => return Err(format!("whole: {whole:?}\nstored: {stored:?}")),
            }
            self.ordinal = self.world.reader.ordinal();
            let Ok(compiled) = stored else { continue };
            let ticket = &compiled.receipt.ticket;
            if *succeeds {
                self.world.acknowledge(&called);
                self.engine.acknowledge(&self.at, ticket, Answer::default()).await.expect("the call is open");
                self.next = self.world.log.head().map_or(Seq(0), Seq::next);
                self.pages.push(compiled);
            } else {
                assert!(self.engine.abandon(&self.at, ticket).await.expect("it can be abandoned"));
            }
        }
        Ok(())
    }

    /// Makes every page again.
    async fn again(&self, engine: &Engine<S>) -> Result<(), String> {
        for (turn, page) in self.pages.iter().enumerate() {
            let again = engine.again(&self.at, &"main".into(), turn as u64).await.map_err(|it| it.to_string())?;
            if !again.agrees || again.compiled.page != page.page {
                return Err(format!("turn {turn}:\nthen {:?}\nnow  {:?}", page.page, again.compiled.page));
            }
            if again.compiled.receipt.fates != page.receipt.fates {
                return Err(format!("turn {turn}: other fates"));
            }
        }
        Ok(())
    }
}

fn same(whole: &Compiled, stored: &Compiled) -> Result<(), String> {
    let parts = |it: &Compiled| (it.page.clone(), it.receipt.fates.clone(), it.receipt.ticket.clone());
    if parts(whole) == parts(stored) {
        return Ok(());
    }
    Err(format!("whole: {:?}\nstored: {:?}", parts(whole), parts(stored)))
}

#[test]
fn over_memory_every_page_is_that_of_the_whole_log_and_can_be_made_again() {
    for_all(story(40), 400, |story| {
        block_on(async {
            let mut twice = Twice::new(story, Engine::over(Memory::default()), "story").await;
            twice.live(story).await?;
            // An engine that remembers nothing reads all of it from the store.
            let store = twice.engine.store().clone();
            twice.again(&Engine::over(store)).await
        })
    });
}

#[test]
fn a_page_in_blocks_is_that_of_the_whole_log_and_can_be_made_again() {
    for_all(story_in_blocks(40), 150, |story| {
        block_on(async {
            let mut twice = Twice::new(story, Engine::over(Memory::default()), "story").await;
            twice.live(story).await?;
            let store = twice.engine.store().clone();
            twice.again(&Engine::over(store)).await
        })
    });
}

#[test]
fn over_sqlite_every_page_is_that_of_the_whole_log_and_can_be_made_again_after_a_restart() {
    let folder = TempFolder::new();
    let count = std::cell::Cell::new(0);
    for_all(story(40), 40, |story| {
        count.set(count.get() + 1);
        let file = folder.path().join(format!("{}.db", count.get()));
        block_on(async {
            let engine = Engine::over(Sqlite::open(&file).map_err(|it| it.to_string())?);
            let mut twice = Twice::new(story, engine, "story").await;
            twice.live(story).await?;
            let again = Engine::over(Sqlite::open(&file).map_err(|it| it.to_string())?);
            twice.again(&again).await
        })
    });
}

#[test]
fn over_postgres_every_page_is_that_of_the_whole_log_and_of_a_file_byte_for_byte() {
    let folder = TempFolder::new();
    let settings = crate::postgres::place();
    let (_, store) = ((), crate::postgres::open(settings.clone()).expect("a new store"));
    let count = std::cell::Cell::new(0);
    for_all(story(40), 12, |story| {
        count.set(count.get() + 1);
        let (name, file) = (format!("story {}", count.get()), folder.path().join(format!("{}.db", count.get())));
        block_on(async {
            let mut twice = Twice::new(story, Engine::over(store.clone()), &name).await;
            twice.live(story).await?;
            let mut beside =
                Twice::new(story, Engine::over(Sqlite::open(&file).map_err(|it| it.to_string())?), &name).await;
            beside.live(story).await?;
            for (turn, (here, there)) in twice.pages.iter().zip(&beside.pages).enumerate() {
                let bytes = |it: &Compiled| (format!("{:?}", it.page), format!("{:?}", it.receipt));
                if bytes(here) != bytes(there) {
                    return Err(format!("turn {turn} differs between the stores"));
                }
            }
            // Another server, which remembers nothing.
            let again = Postgres::open(settings.clone()).await.map_err(|it| it.to_string())?;
            twice.again(&Engine::over(again)).await
        })
    });
}
