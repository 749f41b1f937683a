//! Encryption: rustls with ring, and the five degrees of trust of [`TlsMode`].

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
};

use crate::server::{Tls, TlsMode};

/// One TLS record and its header: what is read at once.
const RECORD_BYTES: usize = 17 << 10;
/// Where distributions keep the certificates of public authorities, for `verify-identity` without an own one.
const SYSTEM_CAS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// An encrypted conversation, with buffers of its own for what the socket carries.
pub(super) struct Channel {
    tls: ClientConnection,
    /// What came from the socket; `from..to` of it is still to be decrypted.
    incoming: Vec<u8>,
    from: usize,
    to: usize,
    sealed: Vec<u8>,
}

impl Channel {
    /// A client's side; nothing is sent yet.
    pub(super) fn new(tls: &Tls, host: &str) -> Result<Channel, String> {
        let name = ServerName::try_from(host.to_string())
            .map_err(|_| format!("expected a name or an address, got {host:?}"))?;
        let tls = ClientConnection::new(Arc::new(config(tls)?), name).map_err(|error| error.to_string())?;
        Ok(Channel { tls, incoming: vec![0; RECORD_BYTES], from: 0, to: 0, sealed: Vec::new() })
    }

    pub(super) fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    pub(super) fn peer_certificate(&self) -> Option<&[u8]> {
        self.tls.peer_certificates()?.first().map(|certificate| certificate.as_ref())
    }

    /// Encrypts `plain`, and what the handshake has to say, into [`Channel::sealed`].
    pub(super) fn seal(&mut self, mut plain: &[u8]) -> io::Result<()> {
        loop {
            let taken = self.tls.writer().write(plain)?;
            plain = &plain[taken..];
            while self.tls.wants_write() {
                self.tls.write_tls(&mut self.sealed)?;
            }
            if plain.is_empty() {
                return Ok(());
            }
        }
    }

    pub(super) fn sealed(&self) -> &[u8] {
        &self.sealed
    }

    pub(super) fn sent(&mut self) {
        self.sealed.clear();
    }

    /// Where the socket's bytes go; then call [`Channel::open`].
    pub(super) fn incoming(&mut self) -> &mut [u8] {
        &mut self.incoming
    }

    /// The first `got` bytes of [`Channel::incoming`] have come. While hands are shaken they are heard at once.
    pub(super) fn open(&mut self, got: usize) -> Result<(), String> {
        (self.from, self.to) = (0, got);
        while self.tls.is_handshaking() && self.decrypt_some()? {}
        Ok(())
    }

    /// Decrypts some of what has come; false: nothing is left.
    fn decrypt_some(&mut self) -> Result<bool, String> {
        let mut bytes = &self.incoming[self.from..self.to];
        if bytes.is_empty() {
            return Ok(false);
        }
        let taken = self.tls.read_tls(&mut bytes).map_err(|error| error.to_string())?;
        self.from += taken;
        self.tls.process_new_packets().map_err(|error| words(&error))?;
        if taken == 0 { Err("a record without an end".to_string()) } else { Ok(true) }
    }

    /// Decrypted bytes; `None`: more of the socket's are needed; 0: the server has said goodbye.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            // Only where all of it was taken is more decrypted: rustls keeps little.
            match self.tls.reader().read(into) {
                Ok(got) => return Ok(Some(got)),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Some(0)),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                Err(_) if self.decrypt_some().map_err(io::Error::other)? => {}
                Err(_) => return Ok(None),
            }
        }
    }
}

/// rustls's words, and what to do where its words do not say it.
fn words(error: &Error) -> String {
    let hint = match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "; name the authority that signed the server's certificate as the CA, or ask for encryption only (required)"
        }
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "; names count only as subjectAltName; verify-ca does not look at them",
        _ => "",
    };
    format!("{error}{hint}")
}

fn config(tls: &Tls) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier(tls, provider)?);
    match (&tls.cert, &tls.key) {
        (None, None) => Ok(builder.with_no_client_auth()),
        (Some(cert), Some(key)) => {
            let key_der =
                PrivateKeyDer::from_pem_file(key).map_err(|error| format!("{}: {error}", key.display()))?;
            builder
                .with_client_auth_cert(certificates(cert)?, key_der)
                .map_err(|error| format!("{} with {}: {error}", cert.display(), key.display()))
        }
        (Some(cert), None) => Err(format!("{} needs its key", cert.display())),
        (None, Some(key)) => Err(format!("{} needs its certificate", key.display())),
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = CertificateDer::pem_file_iter(path).and_then(|certificates| certificates.collect());
    some(all, path)
}

/// Those of a file that was read already.
fn certificates_in(pem: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    some(CertificateDer::pem_slice_iter(pem).collect(), path)
}

fn some(
    all: Result<Vec<CertificateDer<'static>>, rustls::pki_types::pem::Error>,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = all.map_err(|error| format!("{}: {error}", path.display()))?;
    if all.is_empty() { Err(format!("{} holds no certificate (PEM)", path.display())) } else { Ok(all) }
}

fn verifier(tls: &Tls, provider: Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let any_name = match tls.effective() {
        TlsMode::Disabled | TlsMode::Preferred | TlsMode::Required => {
            return Ok(Arc::new(AnyServer(provider)));
        }
        TlsMode::VerifyCa => true,
        TlsMode::VerifyIdentity => false,
    };
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots(tls)?), provider)
        .build()
        .map_err(|error| error.to_string())?;
    Ok(if any_name { Arc::new(AnyName(inner)) } else { inner })
}

fn roots(tls: &Tls) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    let own = match (&tls.ca, &tls.found_ca) {
        (Some(path), _) => Some((path, certificates(path)?)),
        (None, Some(found)) => Some((&found.path, certificates_in(&found.pem, &found.path)?)),
        (None, None) => None,
    };
    if let Some((path, certificates)) = own {
        for certificate in certificates {
            store.add(certificate).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        return Ok(store);
    }
    if tls.mode == TlsMode::VerifyCa {
        // The owner of any name at all has a certificate that one of them signed.
        return Err("no CA was given: name the authority that signed the server's certificate, \
                    or ask for verify-identity, by the system's authorities"
            .into());
    }
    let path = SYSTEM_CAS.iter().map(Path::new).find(|path| path.exists());
    let path = path.ok_or("no CA was given, and this system keeps none where others do")?;
    // Some authorities of a system's file are of kinds that rustls rejects; the others count.
    store.add_parsable_certificates(certificates(path)?);
    Ok(store)
}

/// Encryption without trust: whoever answers is taken for the server. Signatures prove nothing then, and leaving them
/// unread lets in servers with X.509 v1 certificates, which MySQL's manual used to teach people to make.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Trust in the authority, whatever the name: `verify-ca`.
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        // rustls looks at the name last: with this error everything else was in order.
        match self.0.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
