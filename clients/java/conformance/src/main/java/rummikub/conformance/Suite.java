package rummikub.conformance;

import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.protobuf.UnknownFieldSet;
import com.google.protobuf.util.JsonFormat;
import com.google.rpc.BadRequest;
import io.grpc.ClientInterceptor;
import io.grpc.InsecureChannelCredentials;
import io.grpc.Status;
import io.grpc.okhttp.OkHttpChannelBuilder;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import rummikub.client.Refusals;
import rummikub.client.Rummikub;
import rummikub.v1.BatchValidateTurnsRequest;
import rummikub.v1.CreateGameRequest;
import rummikub.v1.Game;
import rummikub.v1.MeldingRuleset;
import rummikub.v1.PlayTiles;
import rummikub.v1.Player;
import rummikub.v1.Refusal;
import rummikub.v1.ValidateTurnRequest;
import rummikub.v1.ValidateTurnResponse;

/** What the programs for Java and Kotlin have in common: arguments, the calls of wire.json, comparisons. */
public abstract class Suite {
  /** The numbers of changes after which a watch is cut. A short round against bots has 19 changes. */
  protected static final List<Integer> CUTS = List.of(6, 12);

  /** A game with all that never changes. */
  protected static final CreateGameRequest LABELLED =
      CreateGameRequest.newBuilder().putLabels("mode", "conformance").build();

  /** Names as they are sent. */
  protected static final List<String> NAMES =
      List.of("Zoe\u0308", "李雷", "שלום", "\uD83D\uDC68\u200D\uD83D\uDC69\u200D\uD83D\uDC67\u200D\uD83D\uDC66");

  /** How many watches one client has open: more than a connection carries. */
  protected static final int WATCHES = 150;

  /** The server's maximum of turns in a batch. */
  private static final int BATCH = 100;

  protected final String target;
  protected final String validation;
  protected final List<Row> rows;

  /** The games to play, as id:token. */
  protected final List<String> games;

  /** A call of wire.json with the response, or the error, that it has. */
  protected record Row(String id, String rpc, JsonElement request, JsonElement response, Expected error) {}

  /** The error of a call of wire.json. */
  protected record Expected(String code, JsonElement refusal, List<String> fields) {}

  /** An answered call of ValidateTurn. */
  protected record Turn(String id, ValidateTurnRequest request, ValidateTurnResponse answer) {}

  /** A part of a batch, and what its answers must be. */
  protected record Batch(BatchValidateTurnsRequest request, List<Turn> turns) {}

  /** A check, which throws if it fails. */
  @FunctionalInterface
  public interface Check {
    void run() throws Exception;
  }

  private record Wire(List<Row> calls) {}

  protected Suite(String[] arguments) throws IOException {
    var named = new LinkedHashMap<String, String>();
    for (int i = 0; i + 1 < arguments.length; i += 2) {
      named.put(arguments[i], arguments[i + 1]);
    }
    target = named.getOrDefault("--target", "127.0.0.1:50051");
    validation = named.getOrDefault("--validation", target);
    String wire = Files.readString(Path.of(named.getOrDefault("--wire", "tests/conformance/wire.json")));
    rows = new Gson().fromJson(wire, Wire.class).calls;
    games = List.of(named.get("--games").split(","));
  }

  /** Returns the checks by name. */
  protected abstract Map<String, Check> checks();

  /** Runs the checks, prints a line for each, and returns the exit code. What the examples print is dropped. */
  public int run() {
    PrintStream lines = System.out;
    System.setOut(new PrintStream(OutputStream.nullOutputStream()));
    int failed = 0;
    for (var check : checks().entrySet()) {
      long began = System.nanoTime();
      String failure = "";
      try {
        check.getValue().run();
      } catch (Exception | AssertionError error) {
        failed = 1;
        failure = (" " + error).replaceAll("\\s+", " ");
      }
      double seconds = (System.nanoTime() - began) / 1e9;
      lines.printf("%s %s %.2f%s%n", failure.isEmpty() ? "PASS" : "FAIL", check.getKey(), seconds, failure);
    }
    return failed;
  }

  /** Returns a client with interceptors, over connections that can be cut. */
  protected static Rummikub connect(String target, Link link, ClientInterceptor... interceptors) {
    var builder = OkHttpChannelBuilder.forTarget(target, InsecureChannelCredentials.create());
    return new Rummikub(Rummikub.configure(builder.socketFactory(link).intercept(interceptors)).build());
  }

  /** Returns the calls of ValidateTurn that are answered. */
  protected List<Turn> turns() {
    return rows.stream()
        .filter(row -> row.rpc.endsWith("/ValidateTurn") && row.error == null)
        .map(row ->
            new Turn(
                row.id,
                (ValidateTurnRequest) parsed(row.request, ValidateTurnRequest.getDefaultInstance()),
                (ValidateTurnResponse) parsed(row.response, ValidateTurnResponse.getDefaultInstance())))
        .toList();
  }

  /** Returns the same calls in batches, each with the ruleset of its turns. */
  protected List<Batch> batches() {
    var groups = new LinkedHashMap<MeldingRuleset, List<Turn>>();
    turns().forEach(turn -> groups.computeIfAbsent(turn.request.getRuleset(), ruleset -> new ArrayList<>()).add(turn));
    var batches = new ArrayList<Batch>();
    groups.forEach((ruleset, group) -> {
      for (int begin = 0; begin < group.size(); begin += BATCH) {
        List<Turn> part = group.subList(begin, Math.min(begin + BATCH, group.size()));
        var request = BatchValidateTurnsRequest.newBuilder().setRuleset(ruleset);
        part.forEach(turn -> request.addTurns(turn.request.toBuilder().clearRuleset()));
        batches.add(new Batch(request.build(), part));
      }
    });
    return batches;
  }

  /** Compares the answers of a batch. */
  protected static void expectAnswers(List<ValidateTurnResponse> answers, List<Turn> turns) {
    expectEqual("the number of answers", answers.size(), turns.size());
    for (int i = 0; i < turns.size(); i++) {
      expectEqual(turns.get(i).id, answers.get(i), turns.get(i).answer);
    }
  }

  /** Compares the answer of a row, or the error if the answer is null. */
  protected static void expectAnswer(Row row, Message empty, Message answer, Exception error) {
    if (row.error == null) {
      expect(error == null, row.id + ": " + error);
      expectEqual(row.id, answer, parsed(row.response, empty));
      return;
    }
    expect(error != null, row.id + " is answered, not refused");
    expectEqual(row.id, Status.fromThrowable(error).getCode().name(), row.error.code);
    expectEqual(row.id, Refusals.of(error), parsed(row.error.refusal, Refusal.getDefaultInstance()));
    List<String> fields =
        Refusals.detail(error, BadRequest.class).orElse(BadRequest.getDefaultInstance()).getFieldViolationsList().stream()
            .map(BadRequest.FieldViolation::getField)
            .toList();
    expectEqual(row.id, fields, row.error.fields == null ? List.of() : row.error.fields);
  }

  /** Checks messages of a newer server, and that an unset field is not 0. */
  protected static void expectTolerance(Game game) throws InvalidProtocolBufferException {
    var one = UnknownFieldSet.Field.newBuilder().addVarint(1).build();
    var state = UnknownFieldSet.Field.newBuilder().addVarint(9999).build();
    var newer =
        UnknownFieldSet.newBuilder().addField(1000, one).addField(Game.STATE_FIELD_NUMBER, state).build().toByteString();
    Game parsed = Game.parseFrom(game.toByteString().concat(newer));
    expectEqual("the state", parsed.getStateValue(), 9999);
    expectEqual("the unknown field", parsed.getUnknownFields().getField(1000), one);
    expectEqual("the rest", parsed.toBuilder().setState(game.getState()).setUnknownFields(UnknownFieldSet.getDefaultInstance()).build(), game);
    var unset = PlayTiles.parseFrom(PlayTiles.getDefaultInstance().toByteString());
    var zero = PlayTiles.parseFrom(PlayTiles.newBuilder().setRiverIndex(0).build().toByteString());
    expect(!unset.hasRiverIndex() && zero.hasRiverIndex(), "river_index: unset and 0 are the same");
  }

  /** Compares what never changes in a game. */
  protected static void expectSameRules(Game game, Game created) {
    expectEqual("the ruleset", game.getRuleset(), created.getRuleset());
    expectEqual("the settings", game.getSettings(), created.getSettings());
    expectEqual("the visibility", game.getVisibility(), created.getVisibility());
    expectEqual("the labels", game.getLabelsMap(), LABELLED.getLabelsMap());
  }

  /** Checks that two players joined once each with requests that were sent twice. */
  protected static void expectAppliedOnce(Twice twice, Game game) {
    expect(twice.ids.size() > 1 && twice.ids.stream().allMatch(id -> id.length() >= 22), "the ids are " + twice.ids);
    expectEqual("the second answers", twice.second, twice.first);
    expectEqual("the number of players", game.getPlayersCount(), 2);
  }

  /** Returns a game without what belongs to the moment: the server's time, and who is connected. */
  protected static Game still(Game game) {
    Game.Builder builder = game.toBuilder().clearServerTime();
    builder.getPlayersBuilderList().forEach(Suite::disconnect);
    return builder.build();
  }

  private static void disconnect(Player.Builder player) {
    player.clearIsConnected().clearLastSeenTime();
  }

  protected static Message parsed(JsonElement json, Message empty) {
    Message.Builder builder = empty.newBuilderForType();
    try {
      JsonFormat.parser().merge(json.toString(), builder);
    } catch (InvalidProtocolBufferException error) {
      throw new AssertionError(error);
    }
    return builder.build();
  }

  protected static void expect(boolean isGood, String otherwise) {
    if (!isGood) {
      throw new AssertionError(otherwise);
    }
  }

  protected static void expectEqual(String name, Object got, Object want) {
    expect(got.equals(want), name + ": got {" + got + "}, want {" + want + "}");
  }
}
