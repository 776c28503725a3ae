/** The texts of the puzzle's page, in all languages: a part of it, so that no other page loads them. */
import { fill, type Language, language } from "./index.js";

interface PuzzleTexts {
  /** What to do: all tiles, or some. */
  readonly all: string;
  readonly some: string;
  readonly levels: readonly [easy: string, medium: string, hard: string, expert: string];
  readonly check: string;
  readonly solve: string;
  readonly solved: string;
  readonly missing: string;
  readonly illegal: string;
  readonly solution: string;
  /** Said when tiles of the table are dropped on the rack. */
  readonly stays: string;
  /** How the board is used with keys. */
  readonly keys: string;
}

const TEXTS: Readonly<Record<Language, PuzzleTexts>> = {
  en: {
    all: "Lay all {count} tiles of your rack.",
    some: "Lay {count} tiles of your rack. More cannot be laid.",
    levels: ["easy", "medium", "hard", "expert"],
    check: "Check",
    solve: "Show solution",
    solved: "Solved! No turn lays more tiles.",
    missing: "Legal, but more can be laid: {tiles}",
    illegal: "This is not a legal turn yet.",
    solution: "This is a best turn.",
    stays: "Tiles of the table stay on the table.",
    keys: "Arrows move the focus. Space chooses a tile, Enter picks it up, Shift and Enter its meld. Then arrows choose the place, Enter lays the tiles, Escape puts them back.",
  },
  de: {
    all: "Lege alle {count} Steine deiner Hand.",
    some: "Lege {count} Steine deiner Hand. Mehr lassen sich nicht legen.",
    levels: ["leicht", "mittel", "schwer", "für Profis"],
    check: "Prüfen",
    solve: "Lösung zeigen",
    solved: "Gelöst! Kein Zug legt mehr Steine.",
    missing: "Erlaubt, aber es lässt sich mehr legen: {tiles}",
    illegal: "Das ist noch kein erlaubter Zug.",
    solution: "Das ist ein bester Zug.",
    stays: "Steine des Tisches bleiben auf dem Tisch.",
    keys: "Pfeile bewegen den Fokus. Leertaste wählt einen Stein, Enter nimmt ihn auf, Umschalt und Enter seine Reihe oder Gruppe. Dann wählen Pfeile den Platz, Enter legt die Steine, Escape legt sie zurück.",
  },
  es: {
    all: "Coloca las {count} fichas de tu atril.",
    some: "Coloca {count} fichas de tu atril. No se pueden colocar más.",
    levels: ["fácil", "media", "difícil", "experta"],
    check: "Comprobar",
    solve: "Ver la solución",
    solved: "¡Resuelto! Ninguna jugada coloca más fichas.",
    missing: "Es legal, pero se puede colocar más: {tiles}",
    illegal: "Todavía no es una jugada legal.",
    solution: "Esta es una de las mejores jugadas.",
    stays: "Las fichas de la mesa se quedan en la mesa.",
    keys: "Las flechas mueven el foco. Espacio elige una ficha, Intro la toma, Mayús e Intro toma su combinación. Después las flechas eligen el lugar, Intro coloca las fichas y Escape las devuelve.",
  },
  fr: {
    all: "Posez les {count} tuiles de votre chevalet.",
    some: "Posez {count} tuiles de votre chevalet. On ne peut pas en poser plus.",
    levels: ["facile", "moyen", "difficile", "expert"],
    check: "Vérifier",
    solve: "Voir la solution",
    solved: "Résolu ! Aucun coup ne pose plus de tuiles.",
    missing: "C’est permis, mais on peut poser plus : {tiles}",
    illegal: "Ce n’est pas encore un coup permis.",
    solution: "Voici un meilleur coup.",
    stays: "Les tuiles de la table restent sur la table.",
    keys: "Les flèches déplacent le focus. Espace choisit une tuile, Entrée la prend, Maj et Entrée prend sa combinaison. Puis les flèches choisissent la place, Entrée pose les tuiles, Échap les remet.",
  },
  he: {
    all: "הניחו את כל {count} האבנים שבמגש שלכם.",
    some: "הניחו {count} אבנים מהמגש שלכם. אי אפשר להניח יותר.",
    levels: ["קל", "בינוני", "קשה", "למומחים"],
    check: "בדיקה",
    solve: "הצגת הפתרון",
    solved: "נפתר! אין מהלך שמניח יותר אבנים.",
    missing: "חוקי, אבל אפשר להניח יותר: {tiles}",
    illegal: "זה עדיין לא מהלך חוקי.",
    solution: "זהו אחד המהלכים הטובים ביותר.",
    stays: "אבני השולחן נשארות על השולחן.",
    keys: "החיצים מזיזים את המיקוד. רווח בוחר אבן, Enter מרים אותה, Shift ו-Enter את הצירוף שלה. אחר כך החיצים בוחרים מקום, Enter מניח את האבנים, Escape מחזיר אותן.",
  },
  ja: {
    all: "手札の牌{count}枚をすべて出してください。",
    some: "手札の牌を{count}枚出してください。それ以上は出せません。",
    levels: ["初級", "中級", "上級", "超上級"],
    check: "確認",
    solve: "答えを見る",
    solved: "正解です。これより多く出せる手はありません。",
    missing: "ルールには合っていますが、まだ出せます：{tiles}",
    illegal: "まだルールに合っていません。",
    solution: "最善の手の一つです。",
    stays: "場の牌は場に残ります。",
    keys: "矢印キーで移動します。スペースで牌を選び、Enterで持ち上げ、ShiftとEnterで組ごと持ち上げます。矢印で場所を選び、Enterで置き、Escapeで戻します。",
  },
  nl: {
    all: "Leg alle {count} stenen van je plankje.",
    some: "Leg {count} stenen van je plankje. Meer kun je er niet leggen.",
    levels: ["makkelijk", "gemiddeld", "moeilijk", "expert"],
    check: "Controleren",
    solve: "Oplossing tonen",
    solved: "Opgelost! Geen beurt legt meer stenen.",
    missing: "Geldig, maar er kan meer worden gelegd: {tiles}",
    illegal: "Dit is nog geen geldige beurt.",
    solution: "Dit is een beste beurt.",
    stays: "Stenen van de tafel blijven op tafel.",
    keys: "Pijlen verplaatsen de focus. Spatie kiest een steen, Enter pakt hem op, Shift en Enter zijn combinatie. Daarna kiezen pijlen de plaats, Enter legt de stenen, Escape legt ze terug.",
  },
  pl: {
    all: "Wyłóż wszystkie kostki ze stojaka ({count}).",
    some: "Wyłóż kostki ze stojaka: {count}. Więcej się nie da.",
    levels: ["łatwa", "średnia", "trudna", "dla ekspertów"],
    check: "Sprawdź",
    solve: "Pokaż rozwiązanie",
    solved: "Rozwiązane! Żaden ruch nie wykłada więcej kostek.",
    missing: "Zgodne z zasadami, ale można wyłożyć więcej: {tiles}",
    illegal: "To jeszcze nie jest ruch zgodny z zasadami.",
    solution: "To jeden z najlepszych ruchów.",
    stays: "Kostki ze stołu zostają na stole.",
    keys: "Strzałki przenoszą fokus. Spacja wybiera kostkę, Enter ją podnosi, Shift i Enter podnosi cały układ. Potem strzałki wybierają miejsce, Enter kładzie kostki, Escape je odkłada.",
  },
  pt: {
    all: "Baixe todas as {count} peças do seu suporte.",
    some: "Baixe {count} peças do seu suporte. Não é possível baixar mais.",
    levels: ["fácil", "médio", "difícil", "especialista"],
    check: "Verificar",
    solve: "Mostrar a solução",
    solved: "Resolvido! Nenhuma jogada baixa mais peças.",
    missing: "É válido, mas dá para baixar mais: {tiles}",
    illegal: "Ainda não é uma jogada válida.",
    solution: "Esta é uma das melhores jogadas.",
    stays: "As peças da mesa ficam na mesa.",
    keys: "As setas movem o foco. Espaço escolhe uma peça, Enter a pega, Shift e Enter pega a combinação. Depois as setas escolhem o lugar, Enter coloca as peças, Escape as devolve.",
  },
  tr: {
    all: "Istakandaki {count} taşın hepsini aç.",
    some: "Istakandan {count} taş aç. Daha fazlası açılamaz.",
    levels: ["kolay", "orta", "zor", "uzman"],
    check: "Kontrol et",
    solve: "Çözümü göster",
    solved: "Çözüldü! Hiçbir hamle daha fazla taş açmaz.",
    missing: "Kurala uygun, ama daha fazlası açılabilir: {tiles}",
    illegal: "Bu henüz kurala uygun bir hamle değil.",
    solution: "Bu, en iyi hamlelerden biri.",
    stays: "Masadaki taşlar masada kalır.",
    keys: "Oklar odağı taşır. Boşluk bir taş seçer, Enter onu alır, Shift ve Enter perini alır. Sonra oklar yeri seçer, Enter taşları koyar, Escape geri koyar.",
  },
};

/** Returns a text of the puzzle's page. */
export function pt(key: Exclude<keyof PuzzleTexts, "levels">, values: Readonly<Record<string, string | number>> = {}): string {
  return fill(TEXTS[language.value.code][key], values);
}

/** Returns the name of a difficulty, from 1. */
export function levelText(difficulty: number): string {
  return TEXTS[language.value.code].levels[difficulty - 1] ?? "";
}
