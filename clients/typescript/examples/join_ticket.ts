// Signs a join ticket for a player who is signed in, as a back end does (docs/tickets.md). Needs only Node.
//
// Usage: node join_ticket.ts AUDIENCE PLAYER_REF NAME <private key in PEM. Node before 22.18 runs it after tsc.
import { createPrivateKey, randomUUID, sign } from "node:crypto";
import { readFileSync } from "node:fs";

/** Returns a ticket that seats the player in one game within five minutes. */
export function joinTicket(privateKey: string, audience: string, playerRef: string, name: string): string {
  const claims = { aud: audience, sub: playerRef, name, exp: Math.floor(Date.now() / 1000) + 300, jti: randomUUID() };
  const content = [{ alg: "EdDSA", typ: "JWT" }, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
    .join(".");
  return `${content}.${sign(null, Buffer.from(content), createPrivateKey(privateKey)).toString("base64url")}`;
}

const [audience = "", playerRef = "", name = ""] = process.argv.slice(2);
console.log(joinTicket(readFileSync(0, "utf8"), audience, playerRef, name));
