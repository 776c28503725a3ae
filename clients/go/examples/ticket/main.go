// Signs a join ticket for a player who is signed in, as a back end does (docs/tickets.md). Needs only the standard library.
//
// Usage: go run ./examples/ticket AUDIENCE PLAYER_REF NAME <private key in PEM
package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"os"
	"time"
)

// joinTicket returns a ticket that seats the player in one game within five minutes.
func joinTicket(key ed25519.PrivateKey, audience, playerRef, name string) string {
	part := func(value any) string {
		encoded, _ := json.Marshal(value) // of strings and a number
		return base64.RawURLEncoding.EncodeToString(encoded)
	}
	claims := map[string]any{"aud": audience, "sub": playerRef, "name": name,
		"exp": time.Now().Add(5 * time.Minute).Unix(), "jti": rand.Text()}
	content := part(map[string]string{"alg": "EdDSA", "typ": "JWT"}) + "." + part(claims)
	return content + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(key, []byte(content)))
}

func main() {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	block, _ := pem.Decode(text)
	if block == nil || len(os.Args) != 4 {
		log.Fatal("usage: ticket AUDIENCE PLAYER_REF NAME <private key in PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(joinTicket(key.(ed25519.PrivateKey), os.Args[1], os.Args[2], os.Args[3]))
}
