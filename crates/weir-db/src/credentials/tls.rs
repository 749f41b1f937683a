//! Words for encryption, of both families.

use crate::server::TlsMode;

use super::CredentialsError;

/// The words.
const WORDS: [(&str, TlsMode); 11] = [
    ("disabled", TlsMode::Disabled),
    ("preferred", TlsMode::Preferred),
    ("required", TlsMode::Required),
    ("verify-ca", TlsMode::VerifyCa),
    ("verify-identity", TlsMode::VerifyIdentity),
    // PostgreSQL's sslmode; `allow` asks for encryption last instead of first, which nobody can rely on either.
    ("disable", TlsMode::Disabled),
    ("allow", TlsMode::Preferred),
    ("prefer", TlsMode::Preferred),
    ("require", TlsMode::Required),
    ("verify-full", TlsMode::VerifyIdentity),
    ("off", TlsMode::Disabled),
];

/// A mode by its name: MySQL's ssl-mode or PostgreSQL's sslmode.
///
/// # Errors
/// Where it is none.
pub fn tls_mode(text: &str) -> Result<TlsMode, CredentialsError> {
    let typed = text.trim().to_ascii_lowercase().replace('_', "-");
    WORDS.iter().find(|(word, _)| *word == typed).map(|(_, mode)| *mode).ok_or_else(|| {
        let known = "disabled, preferred, required, verify-ca or verify-identity";
        CredentialsError::new(format!("expected a mode of encryption, got `{text}`")).hint(format!(
            "use \
            {known}"
        ))
    })
}
