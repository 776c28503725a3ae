import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema } from "./gen/google/rpc/error_details_pb.js";
import { ErrorReason } from "./gen/rummikub/v1/error_reason_pb.js";
import { RefusalSchema, type Violation } from "./gen/rummikub/v1/violation_pb.js";

/** Why the service refused a call. */
export interface Refused {
  /** The status code. */
  readonly code: Code;
  /** The reason. A reason that this client does not know keeps its number. */
  readonly reason: ErrorReason;
  /** The name of the reason, such as `NOT_YOUR_TURN`; its number if this client does not know it. */
  readonly name: string;
  /** The values that belong to the reason. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The violations of an illegal turn. */
  readonly violations: readonly Violation[];
  /** The fields of the request that are at fault, in order. */
  readonly fields: readonly string[];
}

const AGAIN = "send the same request with the same request_id later; it is applied once";

const ADVICE: { [reason in ErrorReason]?: string } = {
  [ErrorReason.AUTHORIZATION_MALFORMED]: "pass the seat token or host token exactly as it was returned to seated()",
  [ErrorReason.NOT_A_PLAYER]: "call seated() with the token that joinGame or createGame returned",
  [ErrorReason.NOT_THE_HOST]: "call seated() with the host token that createGame returned",
  [ErrorReason.TOKEN_VOID]: "use the token that replaced it, or join again",
  [ErrorReason.GAME_NOT_FOUND]: "check the game's id; a game that has expired is not found either",
  [ErrorReason.STALE_STATE]: "the game has changed: read it with getGame, and let the player decide again",
  [ErrorReason.HISTORY_UNAVAILABLE]: "start over with a snapshot: watch without an etag",
  [ErrorReason.DUPLICATE_REQUEST]: "use a new request_id for a request with other content",
  [ErrorReason.STORE_UNAVAILABLE]: AGAIN,
  [ErrorReason.SHUTTING_DOWN]: AGAIN,
  [ErrorReason.OVERLOADED]: AGAIN,
  [ErrorReason.ANALYSIS_BUSY]: "send the request again later",
};

/** Returns why the service refused a call; undefined if the error has no reason from the service. */
export function refusal(error: unknown): Refused | undefined {
  if (!(error instanceof ConnectError)) return undefined;
  const [detail] = error.findDetails(RefusalSchema);
  if (detail === undefined) return undefined;
  return {
    code: error.code,
    reason: detail.reason,
    name: ErrorReason[detail.reason] ?? String(detail.reason),
    metadata: detail.metadata,
    violations: detail.violations,
    fields: error.findDetails(BadRequestSchema).flatMap((request) => request.fieldViolations.map(({ field }) => field)),
  };
}

/** Returns a text for a developer: what is wrong, the violations of a turn, and what to do where it is not obvious. */
export function explain(error: unknown): string {
  const text = error instanceof ConnectError ? error.rawMessage : String(error);
  const refused = refusal(error);
  if (refused === undefined) return text;
  const advice =
    ErrorReason[refused.reason] === undefined
      ? `this client does not know the reason ${refused.reason}: it is older than the service; update it`
      : ADVICE[refused.reason];
  const violations = refused.violations.map((violation) => `${violation.subject}: ${violation.text}`);
  return [`${refused.name}: ${text}`, ...violations, ...(advice === undefined ? [] : [advice])].join("; ");
}

/** Whether the error comes from the connection or a proxy, not from the service itself. */
export function isLost(error: ConnectError): boolean {
  const fromConnection = [Code.Unavailable, Code.Canceled, Code.Aborted, Code.Internal, Code.Unknown];
  return fromConnection.includes(error.code) && error.details.length === 0;
}
