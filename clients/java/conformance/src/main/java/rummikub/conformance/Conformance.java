package rummikub.conformance;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import example.FirstGame;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.text.Normalizer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import rummikub.client.Refusals;
import rummikub.client.Rummikub;
import rummikub.client.Tiles;
import rummikub.client.Turns;
import rummikub.client.Watch;
import rummikub.client.WatchOptions;
import rummikub.v1.AddBotRequest;
import rummikub.v1.BatchSuggestTurnsRequest;
import rummikub.v1.BotLevel;
import rummikub.v1.CreateGameRequest;
import rummikub.v1.ErrorReason;
import rummikub.v1.Game;
import rummikub.v1.GameState;
import rummikub.v1.GetGameRequest;
import rummikub.v1.JoinGameRequest;
import rummikub.v1.JoinGameResponse;
import rummikub.v1.Meld;
import rummikub.v1.Position;
import rummikub.v1.ScoreRoundRequest;
import rummikub.v1.ScoreRoundResponse;
import rummikub.v1.StartGameRequest;
import rummikub.v1.StreamValidateTurnsRequest;
import rummikub.v1.StreamValidateTurnsResponse;
import rummikub.v1.SuggestTurnRequest;
import rummikub.v1.Tile;
import rummikub.v1.ValidateDiscardTurnRequest;
import rummikub.v1.ValidateDiscardTurnResponse;
import rummikub.v1.ValidateHandRequest;
import rummikub.v1.ValidateHandResponse;
import rummikub.v1.ValidateMeldsRequest;
import rummikub.v1.ValidateMeldsResponse;
import rummikub.v1.ValidatePlacementRequest;
import rummikub.v1.ValidatePlacementResponse;
import rummikub.v1.ValidateTurnRequest;
import rummikub.v1.ValidateTurnResponse;
import rummikub.v1.ValidationServiceGrpc;
import rummikub.v1.Violation;
import rummikub.v1.WatchContent;
import rummikub.v1.WatchGameRequest;
import rummikub.v1.WatchGameResponse;

/** Checks the Java client against a live server (clients/conformance/README.md). */
public final class Conformance extends Suite {
  private final Rummikub lobby = Rummikub.connect(target);
  private final Rummikub rules = Rummikub.connect(validation);

  private Conformance(String[] arguments) throws IOException {
    super(arguments);
  }

  public static void main(String[] arguments) throws IOException {
    System.exit(new Conformance(arguments).run());
  }

  @Override
  protected Map<String, Check> checks() {
    var checks = new LinkedHashMap<String, Check>();
    checks.put("wire", this::wire);
    checks.put("batch", this::batch);
    checks.put("stream", this::stream);
    checks.put("refusal", this::refusal);
    checks.put("game", this::game);
    checks.put("turns", this::suggestedTurns);
    checks.put("rules", this::rules);
    checks.put("names", this::names);
    checks.put("unknown", this::unknown);
    checks.put("deadline", this::deadline);
    checks.put("retry", this::retry);
    checks.put("watches", this::watches);
    return checks;
  }

  private void wire() {
    for (Row row : rows) {
      switch (row.rpc()) {
        case "rummikub.v1.ValidationService/ValidateMelds" ->
            replay(row, rules.validation()::validateMelds, ValidateMeldsRequest.getDefaultInstance(),
                ValidateMeldsResponse.getDefaultInstance());
        case "rummikub.v1.ValidationService/ValidateTurn" ->
            replay(row, rules.validation()::validateTurn, ValidateTurnRequest.getDefaultInstance(),
                ValidateTurnResponse.getDefaultInstance());
        case "rummikub.v1.ValidationService/ValidatePlacement" ->
            replay(row, rules.validation()::validatePlacement, ValidatePlacementRequest.getDefaultInstance(),
                ValidatePlacementResponse.getDefaultInstance());
        case "rummikub.v1.ValidationService/ValidateHand" ->
            replay(row, rules.validation()::validateHand, ValidateHandRequest.getDefaultInstance(),
                ValidateHandResponse.getDefaultInstance());
        case "rummikub.v1.ValidationService/ValidateDiscardTurn" ->
            replay(row, rules.validation()::validateDiscardTurn, ValidateDiscardTurnRequest.getDefaultInstance(),
                ValidateDiscardTurnResponse.getDefaultInstance());
        case "rummikub.v1.ValidationService/ScoreRound" ->
            replay(row, rules.validation()::scoreRound, ScoreRoundRequest.getDefaultInstance(),
                ScoreRoundResponse.getDefaultInstance());
        default -> expect(false, row.id() + ": add the RPC " + row.rpc() + " to this program");
      }
    }
  }

  private <Q extends Message, R extends Message> void replay(Row row, Function<Q, R> rpc, Q request, R response) {
    @SuppressWarnings("unchecked")
    Q sent = (Q) parsed(row.request(), request);
    try {
      expectAnswer(row, response, rpc.apply(sent), null);
    } catch (StatusRuntimeException error) {
      expectAnswer(row, response, null, error);
    }
  }

  private void batch() {
    for (Batch batch : batches()) {
      expectAnswers(rules.validation().batchValidateTurns(batch.request()).getTurnsList(), batch.turns());
    }
  }

  private void stream() throws Exception {
    var answers = new ArrayList<StreamValidateTurnsResponse>();
    var done = new CompletableFuture<Void>();
    StreamObserver<StreamValidateTurnsRequest> sent =
        ValidationServiceGrpc.newStub(rules.channel())
            .streamValidateTurns(
                new StreamObserver<>() {
                  @Override
                  public void onNext(StreamValidateTurnsResponse answer) {
                    answers.add(answer);
                  }

                  @Override
                  public void onError(Throwable error) {
                    done.completeExceptionally(error);
                  }

                  @Override
                  public void onCompleted() {
                    done.complete(null);
                  }
                });
    List<Turn> turns = turns();
    for (Turn turn : turns) {
      sent.onNext(StreamValidateTurnsRequest.newBuilder().setTurn(turn.request()).setCorrelationId(turn.id()).build());
    }
    sent.onCompleted();
    done.get(60, TimeUnit.SECONDS);
    expectEqual(
        "ids",
        answers.stream().map(StreamValidateTurnsResponse::getCorrelationId).toList(),
        turns.stream().map(Turn::id).toList());
    expectAnswers(answers.stream().map(StreamValidateTurnsResponse::getTurn).toList(), turns);
  }

  /** Players of a game, the first of whom is the host. */
  private record Table(Game game, List<Rummikub> seats) {}

  private Table join(Rummikub lobby, List<String> names) {
    var created = lobby.games().createGame(CreateGameRequest.getDefaultInstance());
    Rummikub caller = lobby.seated(created.getHostToken());
    Game game = created.getGame();
    var seats = new ArrayList<Rummikub>();
    for (String name : names) {
      var request = JoinGameRequest.newBuilder().setGameId(game.getGameId()).setName(name).build();
      JoinGameResponse joined = caller.games().joinGame(request);
      game = joined.getGame();
      seats.add(lobby.seated(joined.getSeatToken()));
      caller = lobby;
    }
    return new Table(game, seats);
  }

  private static Game read(Rummikub client, String id) {
    return client.games().getGame(GetGameRequest.newBuilder().setGameId(id).build()).getGame();
  }

  private void refusal() {
    Table table = join(lobby, List.of("Ann", "Bob"));
    String id = table.game.getGameId();
    var started = table.seats.get(0).games().startGame(StartGameRequest.newBuilder().setGameId(id).build());
    Rummikub player = table.seats.get(started.getGame().getTurn().getSeat() - 1);
    Game game = read(player, id);
    List<Tile> tiles = game.getRackList().subList(0, 2);
    Meld pair = Meld.newBuilder().addAllTiles(tiles).build();
    var error = refused(() -> player.turns().playTurn(Turns.play(game, List.of(pair))));
    var refusal = Refusals.of(error);
    expectEqual("a meld of two tiles", error.getStatus().getCode(), Status.Code.FAILED_PRECONDITION);
    expectEqual("a meld of two tiles", refusal.getReason(), ErrorReason.MELD_TOO_SHORT);
    expectEqual("metadata", refusal.getMetadataOrThrow("violations"), "" + refusal.getViolationsCount());
    Violation first = refusal.getViolations(0);
    expectEqual("the violation", first.getReason(), ErrorReason.MELD_TOO_SHORT);
    expectEqual("the violation's tiles", first.getTilesList(), tiles);
    expectEqual("the violation's subject", first.getSubject(), "play.table[0]");

    List<Meld> low = Tiles.melds("[R1 R2 R3]");
    var turn = ValidateTurnRequest.newBuilder().setTableAfter(rummikub.v1.Table.newBuilder().addAllMelds(low)).addAllRack(low.get(0).getTilesList());
    var judged = rules.validation().validateTurn(turn.setHasMelded(false).build()).getViolationsList();
    expectEqual("violations", judged.size(), 1);
    expectEqual("an initial meld of 6", judged.get(0).getReason(), ErrorReason.INITIAL_MELD_BELOW_THRESHOLD);
    expectEqual("its metadata", judged.get(0).getMetadataMap(), Map.of("total", 6, "threshold", 30));

    expectExplained(lobby.seated("A".repeat(43)), id, "TOKEN_VOID: ", "use the token that replaced it, or join again");
    expectExplained(lobby.seated("a b"), id, "AUTHORIZATION_MALFORMED: ", "pass seated() the token");
    expectExplained(lobby, "0".repeat(32), "GAME_NOT_FOUND: ", "check the game's id");
    try (Rummikub absent = Rummikub.connect("127.0.0.1:1")) {
      expectExplained(absent, id, "no service answers at 127.0.0.1:1; start one with `make run`");
    }
  }

  private static void expectExplained(Rummikub client, String id, String... texts) {
    var request = GetGameRequest.newBuilder().setGameId(id).build();
    var error = refused(() -> client.games().withDeadlineAfter(1, TimeUnit.SECONDS).getGame(request));
    for (String text : texts) {
      expect(error.getMessage().contains(text), "the error " + error.getMessage() + " does not contain " + text);
    }
  }

  private static StatusRuntimeException refused(Runnable call) {
    try {
      call.run();
    } catch (StatusRuntimeException error) {
      return error;
    }
    throw new AssertionError("a call is answered, not refused");
  }

  /** Plays rounds until one is long enough to be cut twice. */
  private void game() {
    for (int attempt = 0; attempt < 3; attempt++) {
      if (wasCutTwice()) {
        return;
      }
    }
    expect(false, "three rounds had fewer than " + CUTS.get(1) + " changes");
  }

  private boolean wasCutTwice() {
    var created = lobby.games().createGame(CreateGameRequest.getDefaultInstance());
    String id = created.getGame().getGameId();
    var joining = JoinGameRequest.newBuilder().setGameId(id).setName("Ann").build();
    String token = lobby.seated(created.getHostToken()).games().joinGame(joining).getSeatToken();
    Rummikub ann = lobby.seated(token);
    for (var level : List.of(BotLevel.BOT_LEVEL_EASY, BotLevel.BOT_LEVEL_MEDIUM, BotLevel.BOT_LEVEL_HARD)) {
      ann.games().addBot(AddBotRequest.newBuilder().setGameId(id).setLevel(level).build());
    }
    ann.games().startGame(StartGameRequest.newBuilder().setGameId(id).build());

    var link = new Link();
    var reconnected = new AtomicInteger();
    var options = WatchOptions.DEFAULT.withOnReconnect((cause, delay) -> reconnected.incrementAndGet());
    var request =
        WatchGameRequest.newBuilder().setGameId(id).setContent(WatchContent.WATCH_CONTENT_BOTH).build();
    Game view = Game.getDefaultInstance();
    int revision = 0;
    int played = 0;
    int changes = 0;
    try (Rummikub watcher = connect(target, link);
        Watch watch = watcher.seated(token).watch(request, options)) {
      for (WatchGameResponse update : watch) {
        if (update.hasSnapshot()) {
          expectEqual("the revision before a snapshot", revision, 0);
          view = update.getSnapshot(); // the person may have the first turn
          revision = view.getRevision();
        } else if (update.hasChange()) {
          expectEqual("the next revision", update.getChange().getRevision(), revision + 1);
          revision = update.getChange().getRevision();
          changes++;
          if (CUTS.contains(changes)) {
            link.cut();
          }
        }
        view = update.hasGame() ? update.getGame() : view;
        if (view.hasTurn() && view.getTurn().getSeat() == view.getSeat() && view.getRevision() != played) {
          played = view.getRevision();
          var found = ann.analysis().suggestTurn(SuggestTurnRequest.newBuilder().setGameId(id).build());
          ann.turns().playTurn(found.getTurn());
        }
      }
    }
    Game last = read(ann, id);
    expectEqual("the state at the end", last.getState(), GameState.GAME_STATE_FINISHED);
    expectEqual("the last revision", revision, last.getRevision());
    expectEqual("the last view", still(view), still(last));
    if (changes <= CUTS.get(1)) {
      return false;
    }
    expectEqual("reconnections", reconnected.get(), CUTS.size());
    return true;
  }

  /** Plays the games to their ends, all at the same time, as the first game of the README does. */
  private void suggestedTurns() throws Exception {
    var threads = Executors.newFixedThreadPool(games.size());
    var played = new ArrayList<Future<?>>();
    for (String game : games) {
      String[] idAndToken = game.split(":");
      played.add(threads.submit(() -> FirstGame.play(lobby.seated(idAndToken[1]), idAndToken[0])));
    }
    threads.shutdown();
    for (Future<?> game : played) {
      game.get();
    }
  }

  /** Watches a game that two players join, and compares what never changes. */
  private void rules() {
    Game created = lobby.games().createGame(LABELLED).getGame();
    var names = new ArrayDeque<>(List.of("Ann", "Bob"));
    try (var games = lobby.watchGames(created.getGameId())) {
      for (Game game : (Iterable<Game>) games::iterator) {
        expectSameRules(game, created);
        if (names.isEmpty()) {
          return;
        }
        lobby.games().joinGame(JoinGameRequest.newBuilder().setGameId(created.getGameId()).setName(names.pop()).build());
      }
    }
    expect(false, "the watch ended");
  }

  private void names() {
    Game game = join(lobby, NAMES).game;
    for (int i = 0; i < NAMES.size(); i++) {
      expectEqual("a name", game.getPlayers(i).getName(), Normalizer.normalize(NAMES.get(i), Normalizer.Form.NFC));
    }
  }

  private void unknown() throws InvalidProtocolBufferException {
    expectTolerance(join(lobby, List.of("Ann")).game);
  }

  private void deadline() {
    List<Tile> rack = Tiles.tiles("R1 R3 R4 B5 B6 B7 K7 K8 K10 O7 O10 O11 O13 J");
    Position position = Position.newBuilder().addAllRack(rack).setHasMelded(false).build();
    var batch = // a faster call may be answered
        BatchSuggestTurnsRequest.newBuilder().addAllPositions(Collections.nCopies(100, position)).build();
    var error = refused(() -> lobby.analysis().withDeadlineAfter(1, TimeUnit.MILLISECONDS).batchSuggestTurns(batch));
    expectEqual("a call of 1 ms", error.getStatus().getCode(), Status.Code.DEADLINE_EXCEEDED);

    var deadlines = new Deadlines();
    try (Rummikub client = connect(target, new Link(), deadlines)) {
      String id = join(client, List.of("Ann")).game.getGameId();
      client.watch(WatchGameRequest.newBuilder().setGameId(id).build()).iterator().next();
    }
    deadlines.expect();
  }

  private void retry() {
    var twice = new Twice();
    try (Rummikub client = connect(target, new Link(), twice)) {
      expectAppliedOnce(twice, join(client, List.of("Ann", "Bob")).game);
    }
  }

  private void watches() {
    try (Rummikub client = Rummikub.connect(target)) {
      String id = join(client, List.of("Ann")).game.getGameId();
      var request = WatchGameRequest.newBuilder().setGameId(id).build();
      for (int i = 0; i < WATCHES; i++) {
        expectEqual("the first update", client.watch(request).iterator().next().getSnapshot().getGameId(), id);
      }
      expectEqual("the game", read(client, id).getGameId(), id);
    }
  }
}
