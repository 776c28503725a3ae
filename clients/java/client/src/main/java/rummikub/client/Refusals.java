package rummikub.client;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.protobuf.ProtoUtils;
import java.util.Map;
import java.util.Optional;
import rummikub.v1.ErrorReason;
import rummikub.v1.Refusal;

/**
 * Reads why the service refused a call. The errors are those of gRPC, or contain one as a cause:
 * {@link io.grpc.StatusRuntimeException}, {@link io.grpc.StatusException}, the {@code ExecutionException} of a future.
 */
public final class Refusals {
  private static final Metadata.Key<com.google.rpc.Status> DETAILS =
      Metadata.Key.of(
          "grpc-status-details-bin", ProtoUtils.metadataMarshaller(com.google.rpc.Status.getDefaultInstance()));
  private static final Map<ErrorReason, String> HINTS =
      Map.of(
          ErrorReason.GAME_NOT_FOUND,
          "check the game's id; games expire",
          ErrorReason.TOKEN_VOID,
          "use the token that replaced it, or join again",
          ErrorReason.NOT_A_PLAYER,
          "make the call on seated(token) with the seat's token, which joinGame returned",
          ErrorReason.NOT_THE_HOST,
          "make the call on seated(token) with the host token, which createGame returned",
          ErrorReason.AUTHORIZATION_MALFORMED,
          "pass seated() the token as joinGame or createGame returned it",
          ErrorReason.STALE_STATE,
          "read the game again and decide again",
          ErrorReason.HISTORY_UNAVAILABLE,
          "start over without an etag",
          ErrorReason.DUPLICATE_REQUEST,
          "use a new request id for a request with other content");

  private Refusals() {}

  /**
   * Returns the reason of a refusal, its metadata, and the violations of an illegal turn; an empty message if the service
   * did not answer. A reason of a newer server is {@code UNRECOGNIZED}; {@code getReasonValue()} has its number.
   */
  public static Refusal of(Throwable error) {
    return detail(error, Refusal.class).orElse(Refusal.getDefaultInstance());
  }

  /** Returns a detail of an error, such as {@code com.google.rpc.BadRequest}, which has the fields at fault. */
  public static <M extends Message> Optional<M> detail(Throwable error, Class<M> type) {
    return detail(Status.trailersFromThrowable(error), type);
  }

  static <M extends Message> Optional<M> detail(Metadata trailers, Class<M> type) {
    try {
      com.google.rpc.Status status = trailers == null ? null : trailers.get(DETAILS);
      if (status != null) {
        for (Any detail : status.getDetailsList()) {
          if (detail.is(type)) {
            return Optional.of(detail.unpack(type));
          }
        }
      }
    } catch (IllegalArgumentException | InvalidProtocolBufferException error) {
      return Optional.empty(); // an exception here would hide the call's own error
    }
    return Optional.empty();
  }

  /** Returns a status whose description has the reason, the server's text, and what to do. */
  static Status explained(Status status, Metadata trailers, Connection connection) {
    String text = status.getDescription() == null ? status.getCode().name() : status.getDescription();
    text = text.lines().findFirst().orElse(""); // gRPC adds the stack trace of a failed connection
    Refusal refusal = detail(trailers, Refusal.class).orElse(Refusal.getDefaultInstance());
    if (refusal.getReasonValue() == 0 && isAbsent(status.getCode(), connection)) {
      String target = connection.channel().authority();
      return status.withDescription(
          "no service answers at " + target + "; start one with `make run`, or correct the address and TLS (" + text + ")");
    }
    String hint =
        refusal.getReasonValue() == 0
            ? hint(status.getCode(), connection)
            : HINTS.getOrDefault(refusal.getReason(), "");
    if (refusal.getReason() == ErrorReason.UNRECOGNIZED) {
      int number = refusal.getReasonValue();
      text = number + ": " + text;
      hint = "the server is newer than this client, which does not know reason " + number + "; update the client";
    } else if (refusal.getReasonValue() != 0) {
      text = refusal.getReason().name() + ": " + text;
    }
    return status.withDescription(hint.isEmpty() ? text : text + "; " + hint);
  }

  /** Returns what to do about an error of a server without a reason; "" if its message says it. */
  private static String hint(Status.Code code, Connection connection) {
    String target = connection.channel().authority();
    return switch (code) {
      case UNIMPLEMENTED ->
          "the server at " + target + " does not have this call: update the server, which is older than this client, or"
              + " call its main address; the validation address has only ValidationService";
      case RESOURCE_EXHAUSTED -> "a message or its metadata is larger than the limit";
      default -> "";
    };
  }

  private static boolean isAbsent(Status.Code code, Connection connection) {
    return switch (code) {
      case UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED -> connection.isAbsent();
      default -> false;
    };
  }
}
