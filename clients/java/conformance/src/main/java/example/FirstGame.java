package example;

import rummikub.client.*;
import rummikub.v1.*;

public class FirstGame {
  public static void main(String[] arguments) {
    String target = arguments.length > 0 ? arguments[0] : "127.0.0.1:50051";
    String preset = arguments.length > 1 ? arguments[1] : "PRESET_SABRA";
    try (Rummikub lobby = Rummikub.connect(target)) {
      var rules = Ruleset.newBuilder();
      rules.getMeldingBuilder().setPreset(Preset.valueOf(preset));
      rules.getMeldingBuilder().getGameEndBuilder().setMatchEnd(MatchEnd.MATCH_END_FIXED_ROUNDS).setMatchRounds(2);
      var created = lobby.games().createGame(CreateGameRequest.newBuilder().setRuleset(rules).build());
      String id = created.getGame().getGameId();
      var joining = JoinGameRequest.newBuilder().setGameId(id).setName("Ann").build();
      var joined = lobby.seated(created.getHostToken()).games().joinGame(joining);
      Rummikub ann = lobby.seated(joined.getSeatToken()); // store the tokens: they are returned once
      var deal = created.getGame().getRuleset().getMelding().getDeal();
      for (int players = 1; players < deal.getPlayersMin(); players++) {
        ann.games().addBot(AddBotRequest.newBuilder().setGameId(id).setLevel(BotLevel.BOT_LEVEL_EASY).build());
      }
      ann.games().startGame(StartGameRequest.newBuilder().setGameId(id).build());
      play(ann, id);
    }
  }

  public static void play(Rummikub ann, String id) {
    ann.watchGames(id).forEach(game -> act(ann, game));
  }

  static void act(Rummikub ann, Game game) {
    System.out.println(Tiles.tableText(game.getTable()) + " rack: " + Tiles.text(game.getRackList()));
    if (game.hasTurn() && game.getTurn().getSeat() == game.getSeat()) {
      var question = SuggestTurnRequest.newBuilder().setGameId(game.getGameId()).build();
      ann.turns().playTurn(ann.analysis().suggestTurn(question).getTurn());
    } else if (game.getState() == GameState.GAME_STATE_ROUND_OVER) {
      ann.turns().startNextRound(StartNextRoundRequest.newBuilder().setGameId(game.getGameId()).build());
    }
  }
}
