//! Encrypted connections, by the same rules as those to providers: the certificate is checked.

use crate::error::Error;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, crypto};
use rustls_platform_verifier::Verifier;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The most certificates that a file may hold.
const CERTIFICATES_MAX: usize = 1_000;

/// Whom to trust.
#[derive(Clone)]
pub(super) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// Trusts nobody, for connections that are not encrypted.
    pub(super) fn none() -> Tls {
        let provider = Arc::new(crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.expect("the provider knows the default versions");
        Tls(Arc::new(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()))
    }

    /// Trusts those whom the system trusts, and those in a file.
    pub(super) fn trusting(roots: Option<&Path>) -> Result<Tls, Error> {
        let provider = Arc::new(crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| unusable(&error))?;
        let own = roots.map(certificates).transpose()?.unwrap_or_default();
        let verifier = Verifier::new_with_extra_roots(own, provider).map_err(|error| unusable(&error))?;
        let config = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth();
        Ok(Tls(Arc::new(config)))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let wrong = |why: String| {
        let what = format!("can't use {} as certificates: {why}", path.display());
        Error::from(recto::Error::settings(what, "name a PEM file with certificates of authorities"))
    };
    let found = CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?;
    found.take(CERTIFICATES_MAX).collect::<Result<_, _>>().map_err(|error| wrong(error.to_string()))
}

fn unusable(error: &dyn std::error::Error) -> Error {
    let what = format!("can't prepare encrypted connections: {error}");
    recto::Error::settings(what, "check the certificates of this system, or name some with `sslrootcert`").into()
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Encrypted;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> io::Result<Handshake> {
        let name = ServerName::try_from(domain.to_string()).map_err(io::Error::other)?;
        Ok(Handshake { connector: TlsConnector::from(Arc::clone(&self.0)), name })
    }
}

/// A connection that is about to be encrypted.
pub(super) struct Handshake {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        Box::pin(async move { Ok(Encrypted(Box::new(self.connector.connect(self.name, stream).await?))) })
    }
}

/// An encrypted connection.
pub(super) struct Encrypted(Box<TlsStream<Socket>>);

impl tokio_postgres::tls::TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
