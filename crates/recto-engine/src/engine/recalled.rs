//! What has left the page, found again in the store.
//!
//! A short conversation is read whole. Of a long one the index tells which entries to read, for each term the newest ones
//! within a bound, so that asking takes the same time however long the log is. The index is brought up to date behind the
//! calls that ask for it; whoever never asks pays nothing for it.

use super::pages::Planned;
use super::{At, Engine};
use crate::body;
use crate::call::{Calling, Material, Recalled};
use crate::error::Error;
use crate::store::{Conversation, ConversationId, Indexed, Posting, Store, Tenant, Termed};
use recto::entry::{Millis, Text};
use recto::fragment::Fragments;
use recto::log::Counted;
use recto::recall::{
    Asked, Commonness, Found, OnPage, Pick, Query, Recall, Shelf, Shortlist, Standing, Within, asked, fragment,
    shortlist, terms_of,
};
use recto::receipt::Warning;
use recto::redact::{Redact, Screen};
use recto::{Compiled, Log, Reader, Request, Role, Seq, Tokenizer, Tokens, compile};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Conversations of so many entries are read whole.
const WHOLE_ENTRIES_MAX: u64 = 600;
/// How many places of each term are looked at.
const PLACES_MAX: usize = 1_000;
/// How many entries of a long log are read for one question.
const ENTRIES_MAX: usize = 400;
/// How many entries are made findable in one write.
const BATCH_ENTRIES: usize = 256;
/// An index that lacks no more than this is up to date: the newest entries are on the page.
const BEHIND_MAX: u64 = 256;
/// How many other conversations of a tenant are looked through, those that were carried on last.
const OTHERS_MAX: usize = 16;
/// Of the budget, the part that what they say may have.
const OTHERS_SHARE: u64 = 3;
/// More places than a conversation has.
const CONVERSATION_SEQS: u64 = 1 << 40;
/// How many forks stand on each other at most, before one is written out.
const CHAIN_MAX: usize = crate::store::FORK_DEPTH_MAX + 1;

/// The conversations whose entries are being made findable, so that nobody does it twice.
#[derive(Debug, Default)]
pub(super) struct Indexing(Mutex<HashSet<At>>);

impl Indexing {
    fn begin(&self, at: &At) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(at.clone())
    }

    fn end(&self, at: &At) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(at);
    }
}

/// Something that a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// Where it stands.
    pub pick: Pick,
    /// Who said it.
    pub role: Role,
    /// Which agent or person, where the log says so.
    pub author: Option<Text>,
    /// When.
    pub at: Option<Millis>,
    /// What it says.
    pub text: String,
}

/// What a search found in one conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Searched {
    /// What was found, in the order of the log.
    pub hits: Vec<Hit>,
    /// How many terms stand at more places than were looked at.
    pub cut_terms: usize,
    /// How many entries can't be found yet.
    pub behind: u64,
}

/// Entries that may answer a question, in order.
#[derive(Default)]
struct Gathered {
    entries: Vec<Arc<Counted>>,
    /// How common terms are in all of the log, where these are not all.
    common: Option<Commonness>,
    cut_terms: usize,
    behind: u64,
}

impl Gathered {
    fn find(&self, query: &Query, on_page: &OnPage<'_>, budget: Tokens, counter: &dyn recto::Count) -> Found {
        let mut shelf = Shelf::default();
        let mut last: Option<Seq> = None;
        for entry in &self.entries {
            if last.is_some_and(|last| last.next() != entry.seq) && self.common.is_some() {
                shelf.skip();
            }
            shelf.add(entry);
            last = Some(entry.seq);
        }
        shelf.find_among(query, on_page, budget, counter, self.common.as_ref())
    }

    fn resolve(&self, found: &Found) -> Vec<(Pick, &Counted)> {
        let entries: Vec<&Counted> = self.entries.iter().map(|entry| &**entry).collect();
        found.resolve(&entries)
    }

    fn warnings(&self) -> impl Iterator<Item = Warning> {
        let cut = (self.cut_terms > 0).then_some(Warning::RecallBound { terms: self.cut_terms });
        let behind = (self.behind > BEHIND_MAX).then_some(Warning::RecallBehind { entries: self.behind });
        cut.into_iter().chain(behind)
    }
}

impl<S: Store> Engine<S> {
    /// Makes a page once more with what comes back beside it, if its policy has anything come back.
    pub(super) async fn recalling(
        &self,
        at: &At,
        calling: Calling<'_>,
        log: &Log,
        reader: &Reader,
        planned: Planned,
    ) -> Result<(Planned, Option<Recalled>), Error> {
        let Planned { compiled: Ok(compiled), edits, wants } = planned else { return Ok((planned, None)) };
        if calling.call.policy.recall.is_none() {
            return Ok((Planned { compiled: Ok(compiled), edits, wants }, None));
        }
        let material = Material::of(calling, log)?;
        let mut reader = reader.clone();
        reader.commit(edits.iter().cloned(), calling.call.policy.digest());
        let request = material.request(log, &reader);
        let (compiled, recalled) = self.with_recalled(at, &request, compiled).await?;
        Ok((Planned { compiled: Ok(compiled), edits, wants }, recalled))
    }

    async fn with_recalled(
        &self,
        at: &At,
        request: &Request<'_>,
        compiled: Compiled,
    ) -> Result<(Compiled, Option<Recalled>), Error> {
        let Some(Asked { query, on_page, budget }) = asked(request, &compiled) else { return Ok((compiled, None)) };
        let (conversation, counter) = (self.conversation(at).await?, request.log.counter());
        let gathered = self.gather(at, &conversation, request.log.head(), &query, request.log.screen()).await?;
        let others = match request.policy.recall {
            Some(Recall { within: Within::Tenant, .. }) => self.gather_others(at, &query, request.log.screen()).await?,
            _ => Vec::new(),
        };
        let of_others = if others.is_empty() { Tokens(0) } else { Tokens(budget.0 / OTHERS_SHARE) };
        let found = gathered.find(&query, &on_page, budget - of_others, counter);
        let elsewhere = elsewhere(&others, &query, of_others, counter);
        let mut picked: Vec<(Pick, &Counted)> =
            elsewhere.iter().map(|(pick, entry)| (pick.clone(), &**entry)).collect();
        picked.extend(gathered.resolve(&found));
        let Some(fragment) = fragment(&picked) else {
            let mut compiled = compiled;
            compiled.receipt.warnings.extend(gathered.warnings());
            return Ok((compiled, None));
        };
        let picks = picked.into_iter().map(|(pick, _)| pick).collect();
        let fragments = match request.fragments {
            Some(own) => own.and(fragment.clone(), counter)?,
            None => Fragments::counted([fragment.clone()], counter)?,
        };
        let mut again = compile(&Request { fragments: Some(&fragments), ..*request })?;
        again.receipt.warnings = compiled.receipt.warnings;
        again.receipt.warnings.extend(gathered.warnings());
        again.receipt.savings.waiting = compiled.receipt.savings.waiting;
        Ok((again, Some(Recalled { picks, fragment })))
    }

    /// Returns what came back beside a past page, from what is left of its entries.
    pub(super) async fn recollected(
        &self,
        at: &At,
        picks: Vec<Pick>,
        redact: &Redact,
    ) -> Result<Option<Recalled>, Error> {
        if picks.is_empty() {
            return Ok(None);
        }
        let screen = self.screen(&at.tenant, redact).await?;
        let mut by_conversation: BTreeMap<Option<Text>, Vec<Seq>> = BTreeMap::new();
        for pick in &picks {
            by_conversation.entry(pick.conversation.clone()).or_default().push(pick.place.seq);
        }
        let mut entries: HashMap<(Option<Text>, Seq), Arc<Counted>> = HashMap::new();
        for (name, seqs) in by_conversation {
            let of = name.as_ref().map_or_else(|| at.clone(), |name| At::new(&at.tenant, &**name));
            // One that was erased since has nothing left to show.
            let read = match self.read_rows(&of, seqs, &screen).await {
                Err(error) if name.is_none() => return Err(error),
                read => read.unwrap_or_default(),
            };
            entries.extend(read.into_iter().map(|entry| ((name.clone(), entry.seq), entry)));
        }
        let of = |pick: &Pick| Some((pick.clone(), &**entries.get(&(pick.conversation.clone(), pick.place.seq))?));
        let resolved: Vec<(Pick, &Counted)> = picks.iter().filter_map(of).collect();
        Ok(fragment(&resolved).map(|fragment| Recalled { picks, fragment }))
    }

    /// Reads the entries of the tenant's other conversations that may answer a question, of those that were carried on
    /// last.
    async fn gather_others(&self, at: &At, query: &Query, screen: &Screen) -> Result<Vec<(Text, Gathered)>, Error> {
        let mut all = self.store().list(&at.tenant, None, crate::store::ROWS_MAX).await?;
        all.retain(|it| it.id != at.conversation);
        all.sort_by_key(|it| std::cmp::Reverse(it.updated));
        let mut others = Vec::new();
        for it in all.iter().take(OTHERS_MAX) {
            let of = At { conversation: it.id.clone(), ..at.clone() };
            let gathered = self.gather(&of, it, it.tally.head(), query, screen).await;
            others.extend(Error::unless_gone(gathered)?.map(|gathered| (it.id.as_str().into(), gathered)));
        }
        Ok(others)
    }

    async fn read_rows(&self, at: &At, seqs: Vec<Seq>, screen: &Screen) -> Result<Vec<Arc<Counted>>, Error> {
        let rows = self.store().rows(&at.tenant, &at.conversation, seqs).await?;
        let counter = self.counter_of(at).await?;
        rows.iter().map(|row| body::read(row, screen, &*counter)).collect()
    }

    /// Reads the entries up to a place that may answer a question.
    async fn gather(
        &self,
        at: &At,
        conversation: &Conversation,
        head: Option<Seq>,
        query: &Query,
        screen: &Screen,
    ) -> Result<Gathered, Error> {
        let Some(head) = head else { return Ok(Gathered::default()) };
        let entries = conversation.tally.sums().entries;
        if entries <= WHOLE_ENTRIES_MAX {
            let rows = self.store().back(&at.tenant, &at.conversation, newest(head, WHOLE_ENTRIES_MAX)).await?;
            let counter = super::counter(conversation)?;
            let read = |row| body::read(row, screen, &*counter);
            let mut entries: Vec<_> = rows.iter().map(read).collect::<Result<_, _>>()?;
            entries.reverse();
            return Ok(Gathered { entries, ..Gathered::default() });
        }
        let state = self.store().indexed(&at.tenant, &at.conversation).await?;
        self.index_behind(at);
        let sought = query.sought();
        let terms = sought.terms().into_iter().map(Text::from).collect();
        let postings = self.store().postings(&at.tenant, &at.conversation, terms, PLACES_MAX).await?;
        let standing = |Posting { mut seqs, is_cut }: Posting| {
            seqs.retain(|seq| *seq <= head);
            Standing { seqs, is_cut }
        };
        let standing: Vec<Standing> = postings.into_iter().map(standing).collect();
        let Shortlist { seqs, common, cut_terms } = shortlist(&sought, &standing, entries, head, ENTRIES_MAX);
        let entries = self.read_rows(at, seqs, screen).await?;
        let reached = state.upto.map_or(0, |upto| upto.0 + 1);
        let behind = (head.0 + 1).saturating_sub(reached);
        Ok(Gathered { entries, common: Some(common), cut_terms, behind })
    }

    /// Finds what answers a query in a conversation, within so many tokens.
    pub async fn search(&self, at: &At, query: &Query, budget: Tokens) -> Result<Searched, Error> {
        let conversation = self.conversation(at).await?;
        if conversation.tally.sums().entries > WHOLE_ENTRIES_MAX {
            self.index(at).await?;
        }
        let screen = self.strict_screen(&at.tenant, &Redact::nothing()).await?;
        let gathered = self.gather(at, &conversation, conversation.tally.head(), query, &screen).await?;
        let counter = super::counter(&conversation)?;
        let found = gathered.find(query, &OnPage::default(), budget, &*counter);
        let hit = |(pick, entry): (Pick, &Counted)| {
            let text = pick.text(entry)?.to_string();
            let original = entry.original();
            Some(Hit { role: original.role, author: original.author.clone(), at: original.at, text, pick })
        };
        let hits = gathered.resolve(&found).into_iter().filter_map(hit).collect();
        Ok(Searched { hits, cut_terms: gathered.cut_terms, behind: gathered.behind })
    }

    /// Makes all entries of a conversation findable, and returns how far that has come.
    pub async fn index(&self, at: &At) -> Result<Indexed, Error> {
        // What a fork shares is in the index of the conversation that it goes on from.
        for conversation in self.chain(at).await?.iter().skip(1).rev() {
            self.index_own(&at.tenant, conversation).await?;
        }
        self.index_own(&at.tenant, &at.conversation).await
    }

    /// Returns how far the index of a conversation has come.
    pub async fn indexed(&self, at: &At) -> Result<Indexed, Error> {
        self.store().indexed(&at.tenant, &at.conversation).await
    }

    async fn chain(&self, at: &At) -> Result<Vec<ConversationId>, Error> {
        let mut chain = vec![at.conversation.clone()];
        for _ in 0..CHAIN_MAX {
            let last = chain.last().expect("it has one");
            let row = self.store().conversation(&at.tenant, last).await?;
            match row.from {
                Some(from) => chain.push(from.conversation),
                None => break,
            }
        }
        Ok(chain)
    }

    async fn index_own(&self, tenant: &Tenant, id: &ConversationId) -> Result<Indexed, Error> {
        loop {
            let state = self.store().indexed(tenant, id).await?;
            let from = state.upto.map_or(Seq(0), Seq::next);
            let rows = self.store().forth(tenant, id, from, BATCH_ENTRIES).await?;
            if rows.is_empty() {
                return Ok(state);
            }
            let screen = self.strict_screen(tenant, &Redact::nothing()).await?;
            let all = move || rows.iter().map(|row| termed(row, &screen)).collect::<Result<Vec<_>, _>>();
            let termed = tokio::task::spawn_blocking(all);
            let termed = termed.await.unwrap_or_else(|_| Ok(Vec::new()))?;
            if termed.is_empty() {
                return Ok(state);
            }
            self.store().index(tenant, id, termed).await?;
        }
    }

    /// Brings an index up to date while others go on.
    fn index_behind(&self, at: &At) {
        if self.inner.indexing.begin(at) {
            let (engine, at) = (self.clone(), at.clone());
            tokio::spawn(async move {
                // If it fails, the next one that asks tries again.
                drop(engine.index(&at).await);
                engine.inner.indexing.end(&at);
            });
        }
    }
}

/// Finds what answers a query in several conversations at once, so that their passages are weighed against each other.
fn elsewhere(
    others: &[(Text, Gathered)],
    query: &Query,
    budget: Tokens,
    counter: &dyn recto::Count,
) -> Vec<(Pick, Arc<Counted>)> {
    // Places of different conversations must differ while they stand on one shelf.
    let shifted = |nth: usize, seq: Seq| Seq(nth as u64 * CONVERSATION_SEQS + seq.0 % CONVERSATION_SEQS);
    let mut entries = Vec::new();
    for (nth, (_, gathered)) in others.iter().enumerate() {
        for entry in &gathered.entries {
            let mut moved = Counted::clone(entry);
            moved.seq = shifted(nth, entry.seq);
            entries.push((Arc::new(moved), entry.clone()));
        }
    }
    let mut shelf = Shelf::default();
    let mut last: Option<Seq> = None;
    for (moved, _) in &entries {
        if last.is_some_and(|last| last.next() != moved.seq) {
            shelf.skip();
        }
        shelf.add(moved);
        last = Some(moved.seq);
    }
    let found = shelf.find(query, &OnPage::default(), budget, counter);
    let originals: HashMap<Seq, &Arc<Counted>> = entries.iter().map(|(moved, own)| (moved.seq, own)).collect();
    let back = |mut pick: Pick| {
        let own = (*originals.get(&pick.place.seq)?).clone();
        let nth = usize::try_from(pick.place.seq.0 / CONVERSATION_SEQS).ok()?;
        pick.conversation = Some(others.get(nth)?.0.clone());
        pick.place.seq = own.seq;
        Some((pick, own))
    };
    found.picks.into_iter().filter_map(back).collect()
}

fn newest(head: Seq, rows: u64) -> crate::store::Back {
    let rows = usize::try_from(rows).unwrap_or(usize::MAX);
    crate::store::Back { below: Some(head.next()), strands: Vec::new(), rows, tokens: Tokens(u64::MAX) }
}

/// What an entry is found by: nothing of what no model may be told.
fn termed(row: &crate::store::Row, screen: &Screen) -> Result<Termed, Error> {
    let terms = match row.is_erased {
        true => Vec::new(),
        false => terms_of(&*body::read(row, screen, &Tokenizer::Bytes4)?),
    };
    Ok(Termed { seq: row.seq, terms: terms.into_iter().map(Text::from).collect() })
}
