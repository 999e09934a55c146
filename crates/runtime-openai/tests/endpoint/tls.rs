//! A service that is reached by TLS.

use std::io;
use std::sync::Arc;

use crate::common::{Place, request, text};
use offshoot_model::Reason;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
                      data: {\"choices\":[{\"delta\":{\"content\":\"in secret\"},\"finish_reason\":\"stop\"}]}\n\n\
                      data: [DONE]\n\n";

/// A service with a certificate that it has made itself, and a file with that.
struct Service {
    folder: tempfile::TempDir,
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Service {
    async fn new() -> Self {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("ca.pem"), cert.pem()).expect("a file");
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .expect("a certificate with its key");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        Self { folder, listener, acceptor: TlsAcceptor::from(Arc::new(config)) }
    }

    /// A runtime that calls it, and trusts what its file says where it is told to.
    fn place(&self, trusts: bool) -> Place {
        let port = self.listener.local_addr().expect("an address").port();
        Place::with([], |options| {
            options.base_url = format!("https://localhost:{port}/v1");
            options.certificates = trusts.then(|| self.folder.path().join("ca.pem"));
            options.retries.count = 0;
        })
    }

    /// Answers one call.
    async fn serve(&self) -> io::Result<String> {
        let (stream, _) = self.listener.accept().await?;
        let mut stream = self.acceptor.accept(stream).await?;
        let request = request(&mut stream).await?;
        stream.write_all(ANSWER.as_bytes()).await?;
        stream.shutdown().await?;
        Ok(request)
    }
}

#[tokio::test]
async fn a_certificate_that_is_trusted() {
    let service = Service::new().await;
    let place = service.place(true);
    let ((finished, _), served) = tokio::join!(place.run("go"), service.serve());
    assert_eq!(text(&finished), "in secret", "{:?}", finished.reason);
    let request = served.expect("a call");
    assert!(request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{request}");
}

#[tokio::test]
async fn one_that_is_not() {
    let service = Service::new().await;
    let place = service.place(false);
    let ((finished, _), served) = tokio::join!(place.run("go"), service.serve());
    let Reason::RuntimeError { message, retryable } = &finished.reason else {
        panic!("{:?}", finished.reason)
    };
    assert!(!retryable, "it will be the same the next time");
    assert!(message.contains("certificate"), "{message}");
    assert!(served.is_err(), "nothing was told to it");
}
