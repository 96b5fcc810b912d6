//! Where a store in PostgreSQL is, as an address says it, and how long and how often it is asked.

use super::tls::Tls;
use crate::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

/// How an address begins.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
const SCHEMA: &str = "recto";
const CONNECTIONS: usize = 16;
const CONNECTIONS_MAX: usize = 1_000;
const WAIT: Duration = Duration::from_secs(20);
const WAIT_MAX: Duration = Duration::from_secs(600);
/// How long one server may take to answer a new connection, before the next one is asked.
const CONNECT_WAIT: Duration = Duration::from_secs(3);
/// How long nothing may be heard of what was sent before a connection counts as lost.
const SILENCE: Duration = Duration::from_secs(10);
const SCHEMA_BYTES_MAX: usize = 63;
const EXAMPLE: &str = "write it like postgres://recto@db1,db2/recto?sslmode=require; what is special in a password is \
                       written as %40; it can also stand in PGPASSWORD";

/// Where a store is, and how it is used. Shown, it has no password.
#[derive(Clone)]
pub struct Settings {
    pub(super) config: Config,
    pub(super) schema: String,
    pub(super) connections: usize,
    pub(super) wait: Duration,
    /// Whether statements are kept prepared: only where every connection is one to the server itself.
    pub(super) is_prepared: bool,
    pub(super) tls: Tls,
    /// Which of the servers took writes last; clones share it.
    pub(super) writable: Arc<AtomicUsize>,
}

impl Settings {
    /// Returns whether a name of a store is such an address.
    pub fn is_address(name: &str) -> bool {
        SCHEMES.iter().any(|scheme| name.starts_with(scheme))
    }

    /// Returns the same with a password, unless there is one.
    #[must_use]
    pub fn or_password(mut self, password: &str) -> Settings {
        if self.config.get_password().is_none() {
            self.config.password(password);
        }
        self
    }

    /// Returns the same store under another schema of the database.
    pub fn in_schema(self, schema: &str) -> Result<Settings, Error> {
        Ok(Settings { schema: named(schema)?, ..self })
    }

    /// Returns the same with another bound on how long something waits.
    #[must_use]
    pub fn waiting(self, wait: Duration) -> Settings {
        Settings { wait, ..self }
    }
}

impl FromStr for Settings {
    type Err = Error;

    /// Reads an address: what PostgreSQL takes, and `schema`, `connections`, `wait_ms` and `prepared`.
    fn from_str(address: &str) -> Result<Settings, Error> {
        let (place, parameters) = address.split_once('?').unwrap_or((address, ""));
        let (mut schema, mut connections, mut wait) = (SCHEMA.to_string(), CONNECTIONS, WAIT);
        let (mut mode, mut roots, mut is_prepared) = (SslMode::Prefer, None, false);
        let mut left = Vec::new();
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            match name {
                "schema" => schema = named(&decoded(value)?)?,
                "connections" => connections = bounded(name, value, CONNECTIONS_MAX as u64)? as usize,
                "wait_ms" => wait = Duration::from_millis(bounded(name, value, WAIT_MAX.as_millis() as u64)?),
                "prepared" => is_prepared = yes_or_no(name, value)?,
                "sslmode" => mode = ssl_mode(value)?,
                "sslrootcert" => roots = Some(PathBuf::from(decoded(value)?)),
                _ => left.push(parameter),
            }
        }
        let left = if left.is_empty() { place.to_string() } else { format!("{place}?{}", left.join("&")) };
        // What is wrong with it is not told: it may hold a password.
        let mut config: Config = left.parse().map_err(|_| wrong("can't read the address of PostgreSQL"))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(wrong("no server stands in the address of PostgreSQL"));
        }
        config.ssl_mode(mode).target_session_attrs(TargetSessionAttrs::ReadWrite);
        config.keepalives_idle(SILENCE).tcp_user_timeout(SILENCE);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_WAIT);
        }
        if config.get_application_name().is_none() {
            config.application_name("recto");
        }
        let tls = if mode == SslMode::Disable { Tls::none() } else { Tls::trusting(roots.as_deref())? };
        Ok(Settings { config, schema, connections, wait, is_prepared, tls, writable: Arc::default() })
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config = &self.config;
        let hosts = config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        });
        let hosts: Vec<String> = match config.get_hosts().is_empty() {
            true => config.get_hostaddrs().iter().map(ToString::to_string).collect(),
            false => hosts.collect(),
        };
        let ports = config.get_ports();
        let port = |at: usize| ports.get(at).or(ports.first()).map_or(String::new(), |port| format!(":{port}"));
        let places: Vec<String> = hosts.iter().enumerate().map(|(at, host)| format!("{host}{}", port(at))).collect();
        let user = config.get_user().map_or(String::new(), |user| format!("{user}@"));
        let database = config.get_dbname().unwrap_or_default();
        write!(f, "postgres://{user}{}/{database}?schema={}", places.join(","), self.schema)
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

fn named(schema: &str) -> Result<String, Error> {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let is_name = schema.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase() || byte == b'_');
    match is_name && schema.len() <= SCHEMA_BYTES_MAX && schema.bytes().all(is_letter) {
        true => Ok(schema.into()),
        false => {
            let what = format!("can't use {schema:?} as the name of a schema");
            Err(recto::Error::settings(what, "it has small letters, digits and underscores, at most 63").into())
        }
    }
}

fn bounded(name: &str, value: &str, most: u64) -> Result<u64, Error> {
    let number = value.parse::<u64>().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| {
        let what = format!("`{name}` in the address of PostgreSQL is {value:?}");
        recto::Error::settings(what, format!("it is a number from 1 to {most}")).into()
    })
}

fn yes_or_no(name: &str, value: &str) -> Result<bool, Error> {
    match value {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => {
            let what = format!("`{name}` in the address of PostgreSQL is {value:?}");
            Err(recto::Error::settings(what, "it is yes or no").into())
        }
    }
}

/// Whoever asks for encryption gets it with a check of the certificate, whatever word is used.
fn ssl_mode(value: &str) -> Result<SslMode, Error> {
    match value {
        "disable" => Ok(SslMode::Disable),
        "prefer" | "allow" => Ok(SslMode::Prefer),
        "require" | "verify-ca" | "verify-full" => Ok(SslMode::Require),
        _ => {
            let what = format!("`sslmode` in the address of PostgreSQL is {value:?}");
            Err(recto::Error::settings(what, "it is disable, prefer or require").into())
        }
    }
}

fn decoded(value: &str) -> Result<String, Error> {
    let mut bytes = Vec::new();
    let mut rest = value.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let code = behind.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(code.ok_or_else(|| wrong("can't read the address of PostgreSQL"))?);
        rest = &behind[2..];
    }
    String::from_utf8(bytes).map_err(|_| wrong("can't read the address of PostgreSQL"))
}

fn wrong(what: &str) -> Error {
    recto::Error::settings(what.to_string(), EXAMPLE).into()
}
