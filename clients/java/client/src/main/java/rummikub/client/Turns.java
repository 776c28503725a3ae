package rummikub.client;

import java.util.List;
import rummikub.v1.DrawTile;
import rummikub.v1.Game;
import rummikub.v1.JokerFaces;
import rummikub.v1.Meld;
import rummikub.v1.Pass;
import rummikub.v1.Placement;
import rummikub.v1.PlayTiles;
import rummikub.v1.PlayTurnRequest;
import rummikub.v1.Table;

/** Makes requests for turns in a game as the caller has seen it. */
public final class Turns {
  private Turns() {}

  /** Returns the request to play tiles. The table has all melds after the turn. */
  public static PlayTurnRequest play(Game game, List<Meld> table) {
    return turn(game).setPlay(PlayTiles.newBuilder().setTable(Table.newBuilder().addAllMelds(table))).build();
  }

  /**
   * Returns the request to play tiles in the cross layout. The placements are all tiles of the table after the turn; those of
   * the game's table can be sent back as they are.
   */
  public static PlayTurnRequest place(Game game, List<Placement> placements) {
    return turn(game).setPlay(PlayTiles.newBuilder().setTable(Table.newBuilder().addAllPlacements(placements))).build();
  }

  /** Returns the request to draw a tile. */
  public static PlayTurnRequest draw(Game game) {
    return turn(game).setDraw(DrawTile.getDefaultInstance()).build();
  }

  /** Returns the request to pass. */
  public static PlayTurnRequest pass(Game game) {
    return turn(game).setPassTurn(Pass.getDefaultInstance()).build();
  }

  /**
   * Returns the melds of a table as a player sends them back. They keep their kinds, and declare the faces of the jokers of
   * a meld if each can stand for one face only.
   */
  public static List<Meld> meldsOf(List<Meld> table) {
    return table.stream().map(Turns::meld).toList();
  }

  private static Meld meld(Meld meld) {
    Meld.Builder sent = Meld.newBuilder().addAllTiles(meld.getTilesList()).setKind(meld.getKind());
    List<JokerFaces> jokers = meld.getJokersList();
    if (jokers.stream().allMatch(joker -> joker.getFacesCount() == 1)) {
      jokers.forEach(joker -> sent.addDeclaredFaces(joker.getFaces(0)));
    }
    return sent.build();
  }

  private static PlayTurnRequest.Builder turn(Game game) {
    return PlayTurnRequest.newBuilder().setGameId(game.getGameId()).setEtag(game.getEtag());
  }
}
