/** A record step by step, with the review of the service: the best turn beside the one played. */
// Files that are loaded later share all of the page's start, so that it stays one chunk.
import "./app.js";
import {
  BotLevel,
  type GameRecord,
  type MoveReview,
  MoveKind,
  RecordForm,
  type ReviewGameResponse,
  type SuggestedStep,
  type Tile,
} from "rummikub-client";
import { useEffect, useMemo, useState } from "preact/hooks";
import { service } from "../api/connection.js";
import { finishText } from "../control/finish-text.js";
import { playFrom, seats } from "../control/lobby.js";
import { go, moveLink, routeOf } from "../control/router.js";
import { errorText, type Key, signed, t, tilesList } from "../i18n/index.js";
import { type OpenBoard, pileOf } from "../model/board.js";
import { cornersOf } from "../model/discards.js";
import { type Frame, framesOf, startOf } from "../model/replay.js";
import { stepsOf } from "../model/steps.js";
import { compareTiles } from "../model/tiles.js";
import { Board, FinishedHand, OkeyMelds, OkeyTile } from "./board.js";
import { CopyButton } from "./copy.js";
import { DealsSection } from "./deals-check.js";
import { storedName } from "./fields.js";
import { Stepper } from "./stepper.js";
import { ShownTable } from "./shown-table.js";
import { StaticTile } from "./tile.js";
import { meldingOf } from "../model/turn.js";

const MOVE_TEXTS: { readonly [kind in MoveKind]?: Key } = {
  [MoveKind.DEAL]: "mvDeal",
  [MoveKind.REDEAL]: "mvRedeal",
  [MoveKind.PLAY]: "mvPlay",
  [MoveKind.DRAW]: "mvDraw",
  [MoveKind.LAY_ON_RIVER]: "mvLay",
  [MoveKind.PASS_TURN]: "mvPass",
  [MoveKind.KNOCK]: "mvKnock",
  [MoveKind.SHOW]: "mvShow",
  [MoveKind.CLAIM]: "mvClaim",
  [MoveKind.OBJECT]: "mvObject",
  [MoveKind.PENALTY]: "mvPenalty",
  [MoveKind.TIME_OUT]: "mvTimeOut",
  [MoveKind.RESIGN]: "mvResign",
  [MoveKind.RETURN_TO_SEAT]: "mvReturn",
  [MoveKind.TAKE_OVER]: "mvTakesOver",
  [MoveKind.ABORT]: "gameAborted",
  [MoveKind.TAKE_DISCARD]: "mvTakeDiscard",
  [MoveKind.DISCARD]: "mvDiscard",
  [MoveKind.FINISH]: "mvFinish",
  [MoveKind.FALSE_FINISH]: "mvFalseFinish",
  [MoveKind.SHOW_INDICATOR]: "mvShowIndicator",
  [MoveKind.LAY_TILES]: "mvLayTiles",
  [MoveKind.TAKE_TRUMP]: "mvTakeTrump",
  [MoveKind.FOOT]: "mvFoot",
  [MoveKind.RETURN_DISCARD]: "mvReturnDiscard",
};
const AUTOPLAY_MS = 1_200;
/** A review of a long game takes a while; the service allows a minute. */
const REVIEW_SECONDS = 30n;

export interface ReplayProps {
  gameId?: string;
  /** The move to begin with, from 1. */
  move?: number;
  /** Whether the review is asked for at once. */
  isReview?: boolean;
}

export function ReplayPage({ gameId, move, isReview = false }: ReplayProps) {
  const [record, setRecord] = useState<GameRecord>();
  const [problem, setProblem] = useState("");
  useEffect(() => {
    if (gameId === undefined) return;
    caller(gameId)
      .records.exportGame({ gameId, form: RecordForm.MESSAGE })
      .then(
        ({ exported }) => exported.case === "record" && setRecord(exported.value),
        (error: unknown) => setProblem(errorText(error)),
      );
  }, [gameId]);
  return (
    <main class="page" tabIndex={-1}>
      <h1>{t("replayOf")}</h1>
      <p class="problem" role="alert">
        {problem}
      </p>
      {record === undefined ? (
        gameId === undefined && <ImportForm onRecord={setRecord} onProblem={setProblem} />
      ) : (
        <Replay record={record} gameId={gameId} move={move} isReview={isReview} />
      )}
    </main>
  );
}

/** The caller's seat in a game, whose spectators may see nothing. */
function caller(gameId: string) {
  const seat = seats.find(gameId);
  return seat === undefined ? service : service.seated(seat.token);
}

interface RecordFormProps {
  onRecord: (record: GameRecord) => void;
  onProblem: (text: string) => void;
}

function ImportForm({ onRecord, onProblem }: RecordFormProps) {
  const [text, setText] = useState("");
  const importRecord = async () => {
    onProblem("");
    try {
      const { fault, converted } = await service.records.importRecord({
        source: { case: "text", value: text },
        timeLimit: { seconds: 10n },
      });
      if (fault !== undefined) onProblem(t("recordBad", { move: (fault.moveIndex ?? 0) + 1, text: fault.text }));
      if (converted.case === "record") onRecord(converted.value);
    } catch (error) {
      onProblem(errorText(error));
    }
  };
  return (
    <form
      class="card"
      onSubmit={(event) => {
        event.preventDefault();
        void importRecord();
      }}
    >
      <label class="field">
        {t("recordText")}
        <textarea rows={12} spellcheck={false} value={text} onInput={(e) => setText(e.currentTarget.value)} />
      </label>
      <label class="field">
        {t("openFile")}
        <input
          type="file"
          accept="text/plain"
          onChange={(e) => void e.currentTarget.files?.[0]?.text().then(setText)}
        />
      </label>
      <button class="primary" disabled={text.trim() === ""}>
        {t("replay")}
      </button>
    </form>
  );
}

interface ShownReplay {
  record: GameRecord;
  /** The game that is kept by the service: its moves have addresses. */
  gameId: string | undefined;
  move: number | undefined;
  isReview: boolean;
}

function Replay({ record, gameId, move, isReview }: ShownReplay) {
  const frames = useMemo(() => framesOf(record), [record]);
  const placeOf = (wanted: number) => Math.max(0, Math.min(wanted, frames.length) - 1);
  const [at, setAt] = useState(placeOf(move ?? 1));
  const mySeat = gameId === undefined ? undefined : seats.find(gameId)?.seat || undefined;
  const [isMine, setMine] = useState(mySeat !== undefined);
  const [isAuto, setAuto] = useState(false);
  const [review, setReview] = useState<ReviewGameResponse>();
  const [problem, setProblem] = useState("");
  const [isReviewing, setReviewing] = useState(false);
  const last = frames.length - 1;
  useEffect(() => {
    if (!isAuto) return;
    const timer = setInterval(() => setAt((now) => Math.min(now + 1, last)), AUTOPLAY_MS);
    return () => clearInterval(timer);
  }, [isAuto, last]);
  useEffect(() => {
    if (at === last) setAuto(false);
    // Each move has its address, and going back leaves the replay.
    // The browser may have gone back before this effect runs: then the address is another page's.
    if (gameId !== undefined && routeOf(location.hash).page === "replay") history.replaceState(null, "", moveLink(gameId, at + 1));
  }, [at]);
  useEffect(() => {
    if (move !== undefined) setAt(placeOf(move));
  }, [move]);
  const ask = async () => {
    setReviewing(true);
    setProblem("");
    try {
      setReview(
        await service.records.reviewGame({
          subject: { case: "record", value: record },
          timeLimit: { seconds: REVIEW_SECONDS },
        }),
      );
    } catch (error) {
      setProblem(errorText(error));
    } finally {
      setReviewing(false);
    }
  };
  useEffect(() => {
    if (isReview && frames[0]?.board === undefined) void ask();
  }, []);
  const frame = frames[at];
  const name = (seat: number | undefined) => nameAt(record, at, seat);
  const reviewOf = new Map(review?.moves.map((move) => [move.moveIndex, move]));
  const reviewed = review?.moves.filter(({ seat }) => !isMine || seat === mySeat) ?? [];
  const nextMissed = reviewed.find(({ moveIndex, missed }) => moveIndex > at && missed > 0)?.moveIndex;
  if (frame === undefined) return null;
  return (
    <div class="replay">
      <div class="actions" role="group" aria-label={t("replayOf")}>
        <button type="button" disabled={at === 0} onClick={() => setAt(0)}>
          {t("first")}
        </button>
        <button type="button" disabled={at === 0} onClick={() => setAt(at - 1)}>
          {t("previous")}
        </button>
        <button type="button" class="primary" disabled={at === last} onClick={() => setAuto(!isAuto)}>
          {isAuto ? t("pause") : t("auto")}
        </button>
        <button type="button" disabled={at === last} onClick={() => setAt(at + 1)}>
          {t("next")}
        </button>
        <button type="button" disabled={at === last} onClick={() => setAt(last)}>
          {t("last")}
        </button>
        <label class="slider">
          <span>{t("move", { move: at + 1, moves: frames.length })}</span>
          <input type="range" min={0} max={last} value={at} onInput={(e) => setAt(Number(e.currentTarget.value))} />
        </label>
      </div>
      {review !== undefined && (
        <>
          <MissedGraph moves={reviewed} at={at} name={name} onMove={setAt} />
          {mySeat !== undefined && (
            <label class="check">
              <input type="checkbox" checked={isMine} onChange={(event) => setMine(event.currentTarget.checked)} />
              {t("myTurns")}
            </label>
          )}
          <button type="button" disabled={nextMissed === undefined} onClick={() => setAt(nextMissed ?? at)}>
            {t("onlyMistakes")}
          </button>
        </>
      )}
      <p class="move-text" aria-live="polite">
        <span class="badge">{t("round", { round: frame.round })}</span>{" "}
        <strong>{moveText(frame, name(frame.move.seat))}</strong>{" "}
        {gameId !== undefined && <CopyButton text={moveLink(gameId, at + 1)} label={t("copyMove")} />}
      </p>
      {frame.score !== undefined && (
        <p class="winner">
          {frame.score.points.map(({ seat, points }) => `${name(seat)}: ${signed(points)}`).join(", ")}
        </p>
      )}
      {frame.board !== undefined ? (
        <ReplayBoard board={frame.board} played={frame.played} poolCount={frame.poolCount} name={name} mover={name(frame.move.seat)} />
      ) : (
        <section class="felt" aria-label={t("table")}>
          <ShownTable table={frame.table} before={frame.tableBefore} fresh={frame.played} />
        </section>
      )}
      {frame.river.length > 0 && (
        <section class="river" aria-label={t("river")}>
          <h2>{t("river")}</h2>
          <div class="river-tiles">
            {frame.river.map((tile, i) => (
              <StaticTile key={i} tile={tile} />
            ))}
          </div>
        </section>
      )}
      <ul class="open-racks">
        {[...frame.racks].map(([seat, rack]) => (
          <li key={seat} class={seat === frame.move.seat ? "has-turn" : ""}>
            <strong>{name(seat)}</strong> <span class="badge">{t("tiles", { count: rack.length })}</span>
            <div class="small-tiles">
              {[...rack].sort(compareTiles("color")).map((tile, i) => (
                <OkeyTile key={i} tile={tile} okey={frame.board?.okey} />
              ))}
            </div>
          </li>
        ))}
      </ul>
      {frame.board === undefined && (
        <p>
          <span class="badge">{t("pool", { count: frame.poolCount })}</span>
        </p>
      )}
      <Explained frame={frame} record={record} name={name(frame.move.seat)} />
      <PlayOn record={record} frames={frames} at={at} mySeat={mySeat} />
      <DealsSection record={record} gameId={gameId} />
      {frame.board === undefined && (
        <section class="card review" aria-label={t("reviewOf")}>
          <h2>{t("reviewOf")}</h2>
          <p class="problem" role="alert">
            {problem}
          </p>
          {review === undefined ? (
            <>
              <button type="button" disabled={isReviewing} onClick={() => void ask()}>
                {t("review")}
              </button>
              {isReviewing && <p role="status">{t("reviewing")}</p>}
            </>
          ) : (
            <>
              <ul>
                {[...review.seats].sort((a, b) => Number(b.seat === mySeat) - Number(a.seat === mySeat)).map(({ seat, played }) => {
                  const turns = review.moves.filter((move) => move.seat === seat && move.missed > 0).length;
                  return <li key={seat}>{t("reviewSeat", { name: name(seat), played, turns })}</li>;
                })}
              </ul>
              <Reviewed frame={frame} review={reviewOf.get(frame.index)} />
            </>
          )}
        </section>
      )}
    </div>
  );
}

/** The missed tiles of the reviewed turns, in their order: a bar for each, which leads to it. */
function MissedGraph(props: {
  moves: readonly MoveReview[];
  at: number;
  name: (seat: number) => string;
  onMove: (at: number) => void;
}) {
  const { moves, at, name, onMove } = props;
  const most = Math.max(1, ...moves.map(({ missed }) => missed));
  return (
    <>
      <p class="help">{t("missedGraph")}</p>
      <div class="graph" role="group" aria-label={t("missedGraph")}>
        {moves.map(({ moveIndex, seat, missed }) => (
          <button
            key={moveIndex}
            type="button"
            class={missed > 0 ? "bar missed" : "bar"}
            aria-current={moveIndex === at}
            aria-label={t("missedBar", { move: moveIndex + 1, name: name(seat), missed })}
            title={t("missedBar", { move: moveIndex + 1, name: name(seat), missed })}
            style={{ "--missed": missed / most }}
            onClick={() => onMove(moveIndex)}
          />
        ))}
      </div>
    </>
  );
}

/** The table of a game of discards, as the player of the lowest seat sees it. */
function ReplayBoard({
  board,
  played,
  poolCount,
  name,
  mover,
}: {
  board: OpenBoard;
  played: readonly Tile[];
  poolCount: number;
  name: (seat: number) => string;
  mover: string;
}) {
  const { indicator, okey, trump, finish, turnOrder, lastSeat, table } = board;
  const piles = cornersOf(turnOrder, Math.min(...turnOrder));
  return (
    <>
      <Board
        indicator={indicator}
        okey={okey}
        poolCount={poolCount}
        trump={trump}
        lastTile={finish?.tile ?? board.lastTile}
        piles={piles.map(({ seat, corner }) => {
          const pile = pileOf(board, seat);
          return { seat, corner, name: name(seat), newest: pile.at(-1), count: pile.length, isFresh: seat === lastSeat };
        })}
      >
        {table.length > 0 ? (
          <div class="laid">
            <OkeyMelds parts={table} okey={okey} fresh={played} label={t("meldsOnTable")} />
          </div>
        ) : undefined}
      </Board>
      {finish && (
        <div class="card">
          <FinishedHand hand={finish.hand} okey={okey} text={finishText(mover, finish, okey)} />
        </div>
      )}
    </>
  );
}

/** The turn that was played, beside the best one. */
function Reviewed({ frame, review }: { frame: Frame; review: MoveReview | undefined }) {
  if (review === undefined) return null;
  const { best, missed } = review;
  if (missed === 0 || best === undefined) return <p class="good-text">{t("reviewPerfect")}</p>;
  return (
    <div class="beside">
      <p class="bad-text">{t("reviewMove", { missed })}</p>
      <div class="columns">
        <section class="card" aria-label={t("played")}>
          <h2>{t("played")}</h2>
          <ShownTable table={frame.table} before={frame.tableBefore} fresh={frame.played} />
        </section>
        <Stepper title={t("best")} before={frame.tableBefore} after={best.table} steps={stepsOf(best)} startAtEnd />
      </div>
    </div>
  );
}

/** A button that plays on from the position that is shown, against bots: at the own seat, or where the turn is. */
function PlayOn({ record, frames, at, mySeat }: { record: GameRecord; frames: readonly Frame[]; at: number; mySeat: number | undefined }) {
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const position = useMemo(() => startOf(frames, at), [frames, at]);
  if (position === undefined) return null;
  const begin = async () => {
    setBusy(true);
    setProblem("");
    const seat = mySeat ?? position.turnSeat;
    const others = position.seats.filter((one) => one.seat !== seat);
    const levels = others.map((one) => record.players.find((player) => player.seat === one.seat)?.botLevel || BotLevel.MEDIUM);
    try {
      go(`game/${await playFrom({ ...(record.ruleset && { ruleset: record.ruleset }), position }, storedName() || t("player"), levels, seat)}`);
    } catch (error) {
      setProblem(errorText(error));
      setBusy(false);
    }
  };
  return (
    <p>
      <button type="button" disabled={isBusy} onClick={() => void begin()}>
        {t("playOn")}
      </button>{" "}
      <span class="problem" role="alert">
        {problem}
      </span>
    </p>
  );
}

/** The play step by step, as the service explains it. */
function Explained({ frame, record, name }: { frame: Frame; record: GameRecord; name: string }) {
  const [steps, setSteps] = useState<readonly SuggestedStep[]>();
  useEffect(() => setSteps(undefined), [frame]);
  // On a grid and in a game of discards the table says it all.
  if (frame.played.length === 0 || frame.board !== undefined || (frame.table?.placements.length ?? 0) > 0) return null;
  const ask = async () => {
    const ruleset = meldingOf(record);
    const answer = await service.analysis.explainTurn({
      ...(ruleset && { ruleset }),
      tableBefore: { melds: frame.tableBefore?.melds ?? [] },
      tableAfter: { melds: frame.table?.melds ?? [] },
      pulled: [...frame.pulled],
    });
    setSteps(answer.steps);
  };
  if (steps !== undefined) {
    return (
      <Stepper
        title={t("explained", { name })}
        before={frame.tableBefore}
        steps={steps}
        onClose={() => setSteps(undefined)}
      />
    );
  }
  return (
    <p>
      <button type="button" onClick={() => void ask()}>
        {t("explainPlay")}
      </button>
    </p>
  );
}

/** Returns the name of who has a seat after a move: the player at the start, or who has taken it over. */
function nameAt({ players, moves }: GameRecord, at: number, seat: number | undefined): string {
  const taken = moves.slice(0, at + 1).findLast((move) => move.seat === seat && move.player !== undefined)?.player;
  return (taken ?? players.find((player) => player.seat === seat))?.name ?? "";
}

function moveText({ move, played }: Frame, name: string): string {
  const isKnockWithPlay = move.kind === MoveKind.KNOCK && played.length > 0;
  const key = isKnockWithPlay ? "mvPlayKnock" : MOVE_TEXTS[move.kind];
  if (key === undefined) return "";
  const isFoot = move.kind === MoveKind.FOOT;
  return t(key, { name, seat: move.seat ?? 0, tiles: tilesList(played.length > 0 && !isFoot ? played : move.tiles) });
}
