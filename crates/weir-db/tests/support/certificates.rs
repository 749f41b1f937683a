//! Certificates for tests of encryption, made by openssl.

use std::path::Path;
use std::process::Command;

/// Makes in `folder` an authority (`ca.pem`), what it signed for a server (`cert.pem` and `key.pem`, for the `names` of
/// a subjectAltName) and for a client called `client` (`client.pem` and `client.key`), and a stranger (`other.pem`).
pub fn make(folder: &Path, names: &str) {
    let script = r#"set -e
        names=$1
        new="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
        openssl req -x509 $new -days 2 -subj /CN=authority -keyout ca.key -out ca.pem
        openssl req -x509 $new -days 2 -subj /CN=stranger -keyout other.key -out other.pem
        sign() {
            openssl req $new -subj "/CN=$1" -keyout "$3" -out request.csr
            printf '%s' "$4" >extensions.cnf
            openssl x509 -req -in request.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
                -extfile extensions.cnf -out "$2"
        }
        sign server cert.pem key.pem "subjectAltName=$names"
        sign client client.pem client.key 'keyUsage=digitalSignature'"#;
    let made = Command::new("sh").args(["-c", script, "sh", names]).current_dir(folder).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}
