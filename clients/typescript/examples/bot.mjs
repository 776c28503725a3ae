// Plays what the service suggests, and accepts challenges, until it is stopped (docs/bot-programs.md).
//
// Usage: node bot.mjs NAME. BOT_ADDRESS is host:port, BOT_KEY the front end's key, BOT_TICKETS a file with join tickets,
// one a line.
import { readFileSync } from "node:fs";
import { Bot, connect } from "rummikub-client";

class Suggested extends Bot {
  choose(_view, legal) {
    return legal.suggest();
  }
}

const { BOT_ADDRESS, BOT_KEY, BOT_TICKETS } = process.env;
const tickets = readFileSync(BOT_TICKETS, "utf8").trim().split("\n");
let next = 0;
const bot = new Suggested(connect(BOT_ADDRESS, { apiKey: BOT_KEY }), {
  ticket: () => tickets[next++ % tickets.length],
  name: process.argv[2],
  onError: (error) => console.error(String(error)),
});
await bot.run();
