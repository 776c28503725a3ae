package rummikub.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import rummikub.v1.DiscardBoard;
import rummikub.v1.DiscardPile;
import rummikub.v1.DiscardTile;
import rummikub.v1.FinishHand;
import rummikub.v1.Game;
import rummikub.v1.HandPart;
import rummikub.v1.JokerFaces;
import rummikub.v1.Meld;
import rummikub.v1.MeldKind;
import rummikub.v1.Placement;
import rummikub.v1.PlayTurnRequest;
import rummikub.v1.Table;
import rummikub.v1.Tile;

class TilesTest {
  @Test
  void everyTileHasAName() {
    Map<Tile, String> numbered =
        Map.of(
            Tile.TILE_RED_7, "R7", Tile.TILE_BLUE_13, "B13", Tile.TILE_BLACK_1, "K1", Tile.TILE_ORANGE_10, "O10",
            Tile.TILE_GREEN_5, "G5", Tile.TILE_PURPLE_2, "P2");
    numbered.forEach((tile, name) -> assertEquals(name, Tiles.name(tile)));
    Map<Tile, String> others =
        Map.of(
            Tile.TILE_JOKER, "J", Tile.TILE_FALSE_JOKER, "F", Tile.TILE_DOUBLE_JOKER, "D", Tile.TILE_MIRROR, "M",
            Tile.TILE_COLOR_CHANGE, "C", Tile.UNRECOGNIZED, "?");
    others.forEach((tile, name) -> assertEquals(name, Tiles.name(tile)));
    for (Tile tile : Tile.values()) {
      if (tile != Tile.TILE_UNSPECIFIED && tile != Tile.UNRECOGNIZED) {
        assertEquals(tile, Tiles.tile(Tiles.name(tile)));
      }
    }
    for (String name : List.of("", "R", "R0", "R01", "R14", "X1", "JJ", "?")) {
      var error = assertThrows(IllegalArgumentException.class, () -> Tiles.tile(name));
      assertTrue(error.getMessage().contains("is no tile"));
    }
  }

  @Test
  void tables() {
    for (String text : List.of(".", "[R7 R8 R9]", "[R7 R8 J] | [B4 K4 O4]", "[]")) {
      assertEquals(text, Tiles.meldsText(Tiles.melds(text)));
    }
    for (String text : List.of("R7 R8", "[R7", "[R7 X9]", "[R7] |")) {
      assertThrows(IllegalArgumentException.class, () -> Tiles.melds(text), text);
    }
    assertEquals(List.of(), Tiles.melds(""));
    assertEquals(Tiles.melds("[R7 R8 J]"), Tiles.melds("[r7 r8 j]"));
    Meld meld = Meld.newBuilder().addAllTiles(Tiles.tiles(" R7  J ")).build();
    assertEquals("[R7 J]", Tiles.meldsText(List.of(meld)));
  }

  @Test
  void aTableOfTheCrossLayoutIsTheTextOfItsRows() {
    var row = Table.newBuilder().addPlacements(at("R4", 1, 0)).addPlacements(at("R3", 0, 0));
    assertEquals("0,0[R3 R4]", Tiles.tableText(row.build()));
    row.addPlacements(at("B4", 1, 1)).addPlacements(at("J", 3, 0)).addPlacements(at("R9", -2, -1));
    assertEquals("-2,-1[R9] | 0,0[R3 R4] | 3,0[J] | 1,1[B4]", Tiles.tableText(row.build()));
    String melds = "[R7 R8 R9] | [B4 K4 O4]";
    assertEquals(melds, Tiles.tableText(Table.newBuilder().addAllMelds(Tiles.melds(melds)).build()));
    assertEquals(".", Tiles.tableText(Table.getDefaultInstance()));
  }

  private static Placement at(String tile, int x, int y) {
    return Placement.newBuilder().setTile(Tiles.tile(tile)).setX(x).setY(y).build();
  }

  @Test
  void aTurnPlacesTiles() {
    var placements = List.of(at("R3", -1, 0));
    Table table = Turns.place(Game.getDefaultInstance(), placements).getPlay().getTable();
    assertEquals(Table.newBuilder().addAllPlacements(placements).build(), table);
  }

  @Test
  void aBoardIsTheTextOfItsIndicatorOkeyNewestDiscardsAndTable() {
    var board = DiscardBoard.newBuilder().setIndicator(Tile.TILE_ORANGE_4).setOkey(Tile.TILE_ORANGE_5);
    board.addPiles(DiscardPile.newBuilder().setSeat(1).setNewest(Tile.TILE_FALSE_JOKER).setTileCount(2));
    board.addPiles(DiscardPile.newBuilder().setSeat(3));
    assertEquals("O4 / O5 / 1{F} 3{}", Tiles.boardText(board.build()));
    board.addTable(HandPart.newBuilder().addAllTiles(Tiles.tiles("R7 R8 R9")));
    board.addTable(HandPart.newBuilder().addAllTiles(Tiles.tiles("B1 B1")));
    assertEquals("O4 / O5 / 1{F} 3{} / [R7 R8 R9] | [B1 B1]", Tiles.boardText(board.build()));
    var withTrump = board.clearIndicator().clearOkey().setTrump(Tile.TILE_RED_8).clearTable();
    assertEquals("R8 / 1{F} 3{}", Tiles.boardText(withTrump.build()));
    assertEquals(".", Tiles.boardText(Game.getDefaultInstance().getDiscardBoard()));
  }

  @Test
  void aTurnDiscardsATile() {
    Game game = Game.getDefaultInstance();
    Tile okey = Tile.TILE_ORANGE_5;
    assertEquals(DiscardTile.newBuilder().setTile(okey).build(), Turns.discard(game, okey).getDiscard());
    var hand = List.of(HandPart.newBuilder().addAllTiles(Tiles.tiles("R7 R7")).build());
    var finish = FinishHand.newBuilder().setTile(okey).addAllHand(hand).build();
    assertEquals(finish, Turns.finish(game, okey, hand).getFinish());
    assertEquals(hand, Turns.lay(game, hand).getLay().getTableList());
  }

  @Test
  void meldsDeclareFacesOfJokersThatCanStandForOneOnly() {
    JokerFaces one = JokerFaces.newBuilder().addFaces(Tile.TILE_RED_9).build();
    JokerFaces two = one.toBuilder().addFaces(Tile.TILE_BLUE_9).build();
    Meld run = Meld.newBuilder().setKind(MeldKind.MELD_KIND_RUN).setPoints(9).addJokers(one).build();
    Meld declared = Meld.newBuilder().setKind(MeldKind.MELD_KIND_RUN).addDeclaredFaces(Tile.TILE_RED_9).build();
    Meld open = Meld.newBuilder().setKind(MeldKind.MELD_KIND_RUN).build();
    assertEquals(List.of(declared, open), Turns.meldsOf(List.of(run, run.toBuilder().addJokers(two).build())));
  }

  @Test
  void turnsHaveTheEtag() {
    Game game = Game.newBuilder().setGameId("1").setEtag("x").build();
    for (var turn :
        List.of(
            Turns.play(game, List.of()), Turns.place(game, List.of()), Turns.draw(game), Turns.pass(game),
            Turns.takeFromPool(game), Turns.takeDiscard(game), Turns.discard(game, Tile.TILE_RED_1),
            Turns.finish(game, Tile.TILE_RED_1, List.of()), Turns.lay(game, List.of()), Turns.returnDiscard(game),
            Turns.showIndicator(game), Turns.foot(game, Tile.TILE_RED_1, List.of()), Turns.takeTrump(game),
            Turns.passEmptyPool(game))) {
      assertEquals(List.of("1", "x"), List.of(turn.getGameId(), turn.getEtag()));
      assertNotEquals(PlayTurnRequest.ActionCase.ACTION_NOT_SET, turn.getActionCase());
    }
  }
}
