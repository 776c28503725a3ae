package rummikub.client;

import java.util.List;
import rummikub.v1.DiscardTile;
import rummikub.v1.DrawTile;
import rummikub.v1.FinishHand;
import rummikub.v1.Game;
import rummikub.v1.HandPart;
import rummikub.v1.JokerFaces;
import rummikub.v1.LayTiles;
import rummikub.v1.Meld;
import rummikub.v1.Pass;
import rummikub.v1.PassEmptyPool;
import rummikub.v1.Placement;
import rummikub.v1.PlayTiles;
import rummikub.v1.PlayTurnRequest;
import rummikub.v1.ReturnDiscard;
import rummikub.v1.ShowIndicator;
import rummikub.v1.Table;
import rummikub.v1.TakeDiscard;
import rummikub.v1.TakeFromPool;
import rummikub.v1.TakeTrump;
import rummikub.v1.Tile;

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

  /** Returns the request to take a tile of the pool, in a game of discards. */
  public static PlayTurnRequest takeFromPool(Game game) {
    return turn(game).setTakeFromPool(TakeFromPool.getDefaultInstance()).build();
  }

  /** Returns the request to take the newest discard of the player before. */
  public static PlayTurnRequest takeDiscard(Game game) {
    return turn(game).setTakeDiscard(TakeDiscard.getDefaultInstance()).build();
  }

  /** Returns the request to discard a tile, which ends the turn. */
  public static PlayTurnRequest discard(Game game, Tile tile) {
    return turn(game).setDiscard(DiscardTile.newBuilder().setTile(tile)).build();
  }

  /** Returns the request to discard a tile and finish. The hand has the melds or pairs, none: as the service finds them. */
  public static PlayTurnRequest finish(Game game, Tile tile, List<HandPart> hand) {
    return turn(game).setFinish(FinishHand.newBuilder().setTile(tile).addAllHand(hand)).build();
  }

  /** Returns the request to discard a tile and finish by a Foot. The table is as for {@code lay}, with all other tiles. */
  public static PlayTurnRequest foot(Game game, Tile tile, List<HandPart> table) {
    return turn(game).setFinish(FinishHand.newBuilder().setTile(tile).addAllTable(table)).build();
  }

  /**
   * Returns the request to lay tiles in a game of discards with a table, which has all its melds and pairs afterwards: those
   * of the game's table at their places, grown or as they are, and then new ones.
   */
  public static PlayTurnRequest lay(Game game, List<HandPart> table) {
    return turn(game).setLay(LayTiles.newBuilder().addAllTable(table)).build();
  }

  /** Returns the request to put the discard or the trump taken in this turn back and take a tile of the pool. */
  public static PlayTurnRequest returnDiscard(Game game) {
    return turn(game).setReturnDiscard(ReturnDiscard.getDefaultInstance()).build();
  }

  /** Returns the request to take the trump in place of a tile of the pool. */
  public static PlayTurnRequest takeTrump(Game game) {
    return turn(game).setTakeTrump(TakeTrump.getDefaultInstance()).build();
  }

  /** Returns the request to take no tile from an empty pool, which ends the round. */
  public static PlayTurnRequest passEmptyPool(Game game) {
    return turn(game).setPassEmptyPool(PassEmptyPool.getDefaultInstance()).build();
  }

  /** Returns the request to show the indicator's twin. */
  public static PlayTurnRequest showIndicator(Game game) {
    return turn(game).setShowIndicator(ShowIndicator.getDefaultInstance()).build();
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
