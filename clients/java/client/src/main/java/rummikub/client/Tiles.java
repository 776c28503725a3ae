package rummikub.client;

import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import rummikub.v1.DiscardBoard;
import rummikub.v1.DiscardPile;
import rummikub.v1.HandPart;
import rummikub.v1.Meld;
import rummikub.v1.Placement;
import rummikub.v1.Table;
import rummikub.v1.Tile;

/**
 * Tiles as text: {@code R7} is the red 7, {@code J} a joker, {@code F} a false joker, {@code [R7 R8 R9] | [B1 K1 J]} a table. The
 * colors are R, B, K (black), O, G and P. {@code D}, {@code M} and {@code C} are the double joker, the mirror and the color change of
 * Rummikub Twist.
 */
public final class Tiles {
  private static final Map<String, Tile> BY_NAME = new TreeMap<>();

  static {
    for (Tile tile : Tile.values()) {
      if (tile != Tile.TILE_UNSPECIFIED && tile != Tile.UNRECOGNIZED) {
        BY_NAME.put(name(tile), tile);
      }
    }
  }

  private Tiles() {}

  /** Returns the name of a tile; {@code ?} for one that this client does not know. */
  public static String name(Tile tile) {
    String[] parts = tile.name().split("_"); // TILE_RED_7, TILE_JOKER
    return switch (tile) {
      case TILE_JOKER -> "J";
      case TILE_FALSE_JOKER -> "F";
      case TILE_DOUBLE_JOKER -> "D";
      case TILE_MIRROR -> "M";
      case TILE_COLOR_CHANGE -> "C";
      case TILE_UNSPECIFIED, UNRECOGNIZED -> "?";
      default -> (parts[1].equals("BLACK") ? "K" : parts[1].substring(0, 1)) + parts[2];
    };
  }

  /** Returns the tile with a name, in capitals or not. */
  public static Tile tile(String name) {
    Tile tile = BY_NAME.get(name.toUpperCase(Locale.ROOT));
    if (tile == null) {
      throw new IllegalArgumentException(
          "\"" + name + "\" is no tile; names are like R7, B13, K1, O10, G5, P2, J, F, D, M and C");
    }
    return tile;
  }

  /** Returns the tiles with names separated by spaces. */
  public static List<Tile> tiles(String names) {
    return Arrays.stream(names.trim().split("\\s+")).filter(name -> !name.isEmpty()).map(Tiles::tile).toList();
  }

  /** Returns the names of tiles, separated by spaces. */
  public static String text(List<Tile> tiles) {
    return tiles.stream().map(Tiles::name).collect(Collectors.joining(" "));
  }

  /** Returns the melds of a text such as {@code [R7 R8 R9] | [B1 K1 J]}; none for {@code .} and an empty text. */
  public static List<Meld> melds(String text) {
    boolean isEmpty = text.isBlank() || text.trim().equals(".");
    return isEmpty ? List.of() : Arrays.stream(text.split("\\|", -1)).map(Tiles::meld).toList();
  }

  /** Returns melds as text; {@code .} if there are none. */
  public static String meldsText(List<Meld> melds) {
    String text = inBrackets(melds.stream().map(Meld::getTilesList));
    return text.isEmpty() ? "." : text;
  }

  /**
   * Returns a table as text: its melds, or in the cross layout the neighbors in a row, each time after the column and the row
   * of the first: {@code 0,0[R3 R4 R5] | 1,1[B4]}.
   */
  public static String tableText(Table table) {
    if (table.getPlacementsCount() == 0) {
      return meldsText(table.getMeldsList());
    }
    var byRow = Comparator.comparingInt(Placement::getY).thenComparingInt(Placement::getX);
    StringBuilder text = new StringBuilder();
    Placement last = null;
    for (Placement placement : table.getPlacementsList().stream().sorted(byRow).toList()) {
      if (last != null && placement.getY() == last.getY() && placement.getX() == last.getX() + 1) {
        text.append(" ");
      } else {
        text.append(last == null ? "" : "] | ").append(placement.getX()).append(",").append(placement.getY()).append("[");
      }
      text.append(name(placement.getTile()));
      last = placement;
    }
    return text.append("]").toString();
  }

  /**
   * Returns the board of a game of discards as text: the tiles that lie face up (the indicator and the okey, or the trump),
   * and the newest discard of each player after the seat, {@code O4 / O5 / 1{R7} 2{}}; then a table with melds, {@code O4 / O5
   * / 1{R7} 2{} / [R7 R8 R9]}. It is {@code .} if there is none.
   */
  public static String boardText(DiscardBoard board) {
    if (board.getPilesCount() == 0) {
      return ".";
    }
    Stream<String> faceUp =
        Stream.of(board.getIndicator(), board.getOkey(), board.getTrump())
            .filter(tile -> tile != Tile.TILE_UNSPECIFIED)
            .map(Tiles::name);
    String piles = board.getPilesList().stream().map(Tiles::pileText).collect(Collectors.joining(" "));
    String table = inBrackets(board.getTableList().stream().map(HandPart::getTilesList));
    Stream<String> shown = Stream.concat(faceUp, Stream.of(piles, table));
    return shown.filter(part -> !part.isEmpty()).collect(Collectors.joining(" / "));
  }

  private static String inBrackets(Stream<List<Tile>> melds) {
    return melds.map(tiles -> "[" + text(tiles) + "]").collect(Collectors.joining(" | "));
  }

  private static String pileText(DiscardPile pile) {
    String newest = pile.getNewest() == Tile.TILE_UNSPECIFIED ? "" : name(pile.getNewest());
    return pile.getSeat() + "{" + newest + "}";
  }

  private static Meld meld(String text) {
    String trimmed = text.trim();
    if (!trimmed.startsWith("[") || !trimmed.endsWith("]")) {
      throw new IllegalArgumentException("\"" + text + "\" is no meld; write it as [R7 R8 R9]");
    }
    return Meld.newBuilder().addAllTiles(tiles(trimmed.substring(1, trimmed.length() - 1))).build();
  }
}
