"""The plots: each has a problem, an attempt, a solution and a moral.

Slots come from `grammar.cast`, and from the variants of a plot. Every combination of templates has to make sense, so a
template relies only on facts that all templates of the preceding steps state.
"""

from __future__ import annotations

from . import vocabulary as words
from .grammar import Plot

LOST = Plot(
    "lost",
    things=(*words.TOYS, *words.CLOTHES),
    steps=(
        (
            "{hero.He} had {thing.a}, and {hero.he} took the {thing} everywhere.",
            "More than anything, {hero.he} loved {hero.his} {thing.full}. No {thing} was as good as this {thing}.",
            "{elder} had given {hero.him} {thing.a}, and the {thing} was {hero.his} best thing.",
        ),
        (
            "{when} {hero} went to {place} to play. When it was time to go home, the {thing} was gone.",
            "{when} {hero} was playing {place.at}. {hero.He} looked around and could not see the {thing}.",
            "{when} {hero.he} ran about {place.at} for hours. Then {hero.he} saw that the {thing} was missing.",
        ),
        (
            '"Where is my {thing}?" cried {hero}.',
            '"Oh no, I have lost my {thing}!" said {hero}, and {hero.his} eyes filled with tears.',
            'This made {hero} very sad. "My poor {thing} is all alone," {hero.he} said.',
        ),
        (
            "{hero.He} looked {first}, but it was not there. {hero.He} looked {second}, but it was not there either.",
            "First {hero.he} looked {first}. Then {hero.he} looked {second}. There was no {thing} anywhere.",
            "{hero.He} searched {first} and found only a snail.",
        ),
        (
            'Along came {friend.full}. "Four eyes see more than two," said {friend}. "I will help you."',
            '{friend.full} heard {hero.him} crying. "Do not worry," said {friend}. "We will look together."',
            '"What is wrong?" asked {friend.full}. {hero} told {friend.him}, and they went to look together.',
        ),
        (
            "Something {thing.colour} was peeping out {third}. It was the {thing}!",
            'Then {friend} looked {third}. "Here is your {thing}!" {friend.he} called.',
            "At last they looked {third}, and there lay the {thing.full}.",
        ),
        (
            '{hero} hugged the {thing}. "Thank you, {friend}!" {hero.he} said.',
            "{hero} was so glad that {hero.he} danced. {hero.He} thanked {friend} three times.",
            '"You are a good friend," said {hero}, and they played with the {thing} until evening.',
        ),
        (
            "",
            "From that day on, {hero} always knew where {hero.his} {thing} was.",
            "What is hard to find alone is easy to find together.",
        ),
    ),
)

STUCK = Plot(
    "stuck",
    things=("ball", "kite", "balloon", "hat"),
    variants=(
        {"up": "in the branches of a tall tree"},
        {"up": "on the roof of the barn"},
        {"up": "on top of the old wall"},
    ),
    steps=(
        (
            "{when} {hero} was outside with {hero.his} {thing.full}. The {thing} was new.",
            "{when} {hero} took {thing.a} and went out to play. What a fine {thing} it was!",
            "{hero.He} had a new {thing}. The {thing} was {thing.colour}, and {hero.he} was very proud of it.",
        ),
        (
            "Suddenly the wind blew hard. It carried the {thing} away, and it got stuck {up}.",
            "A gust of wind took the {thing} and set it down {up}.",
            "Whoosh, went the wind. Up flew the {thing} and came down {up}.",
        ),
        (
            "{hero} jumped as high as {hero.he} could, but {hero.he} could not reach it.",
            "{hero} tried to climb up, but it was much too high.",
            '"Come down, {thing}!" called {hero}. But the {thing} did not move.',
        ),
        (
            "{hero} sat down on the ground and began to cry.",
            '"I will never get it back," said {hero} sadly.',
            "{hero} did not know what to do.",
        ),
        (
            'Then {friend.full} came along with a long stick. "Let me try," said {friend}.',
            '{elder} heard it, and {elder} brought a ladder. "Hold it well, and I will go up," said {elder}.',
            '{friend.full} had an idea. "Stand on my back," said {friend}. "Together we are tall."',
        ),
        (
            "Soon the {thing} was free again, and {hero} laughed for joy.",
            "A moment later the {thing.full} was back in {hero}'s arms.",
            "Up, up, a little more, and there it was! The {thing} came down, and not a bit of it was broken.",
        ),
        (
            '"Thank you!" said {hero}. "I could not have done it alone."',
            "{hero} said thank you and held the {thing} tight all the way home.",
            '"Next time I will hold on to it," said {hero}.',
        ),
        ("", "It is good to ask for help.", "Even a strong wind is no match for a good friend."),
    ),
)

SHARING = Plot(
    "sharing",
    steps=(
        (
            "{when} {hero} found {thing.a} {place.at}. {friend.full} saw the {thing} at the same time.",
            "{when} {hero} and {friend.full} played {place.at} and found {thing.a}. Whose {thing} was it?",
            "{when} {elder} gave {hero} and {friend.full} {thing.a}. But there was only one {thing}.",
        ),
        (
            '"It is mine!" said {hero}. "No, it is mine!" said {friend}.',
            'Both of them wanted the {thing}. "I want it first," said {hero}. "No, me first," said {friend}.',
            "{hero} took the {thing} and would not let {friend} have it.",
        ),
        (
            "They pulled and pulled, until {friend} fell over and began to cry.",
            "{friend} turned away and did not want to play any more.",
            '"Then I will go home," said {friend}, and {friend.he} turned away with tears in {friend.his} eyes.',
        ),
        (
            "Now {hero} had the {thing} to {hero.self}, but it was no fun at all.",
            "{hero} looked at the {thing}. All alone {hero.he} did not enjoy it.",
            "{hero} felt bad. {hero.He} did not want to lose a friend because of a {thing}.",
        ),
        (
            '"I am sorry," said {hero}. "You can have it first, and then it is my turn."',
            '{hero} went to {friend}. "I am sorry. Let us take turns," {hero.he} said.',
            '{hero} held out the {thing}. "We can share it," {hero.he} said softly.',
        ),
        (
            "{friend} smiled again. They took turns with the {thing} until the sun went down.",
            "So they played with the {thing.full} together, and it was twice as much fun.",
            '"Thank you," said {friend}. First {friend.he} had the {thing}, then {hero} had it, and nobody cried.',
        ),
        ("", "A toy is best when it is shared.", "And {hero} learnt that sharing makes two happy."),
    ),
)

BROKEN = Plot(
    "broken",
    things=("cup", "plate", "vase", "lamp", "pot", "bowl"),
    steps=(
        (
            "{elder} had {thing.a}. The {thing} was {elder}'s best {thing}, and it stood on the table.",
            "On the shelf stood {thing.a}. The {thing} belonged to {elder}, and {elder} liked it very much.",
            '{elder} had {thing.a}. "Nobody is to touch the {thing}," said {elder}.',
        ),
        (
            "{when} {hero} ran through the room and bumped into the {thing}. Crash! The {thing} fell down and broke.",
            "{when} {hero} wanted to look at the {thing} closely. The {thing} slipped and fell and broke in two.",
            "{when} {hero} threw a ball in the house. Crash! The ball hit the {thing}, and it broke.",
        ),
        (
            "{hero} was afraid. {hero.He} hid the pieces under the bed.",
            '"Oh no," whispered {hero}. "{elder} will be angry." {hero.He} put the pieces in a drawer.',
            "{hero}'s heart beat fast. {hero.He} wanted to run away and hide.",
        ),
        (
            'Soon {elder} came in. "Where is my {thing}?" asked {elder}.',
            '"Have you seen my {thing}?" asked {elder} in the evening.',
            "At supper {hero} could not eat, because {hero.he} was thinking of the {thing}.",
        ),
        (
            '{hero} took a deep breath. "I broke it," {hero.he} said. "I am so sorry."',
            '{hero} looked at the floor. "It was me," {hero.he} said. "I broke your {thing}, and I am sorry."',
            "Then {hero} told {elder} everything and cried a little.",
        ),
        (
            '{elder} was quiet for a moment. "Thank you for telling me the truth," {elder.he} said.',
            '{elder} was sad, but {elder.he} was not angry. "You were brave to tell me," {elder.he} said.',
            '"A {thing} can be mended," said {elder}. "I am glad that you told me."',
        ),
        (
            "They took some glue and put the {thing} together again.",
            "Together they glued the pieces, and the {thing.full} looked almost like new.",
            "The next day they made the {thing} whole again with glue and much care.",
        ),
        (
            "",
            "{hero} felt as light as a feather.",
            "Telling the truth is hard, but it makes the heart light.",
        ),
    ),
)

RESCUE = Plot(
    "rescue",
    heroes=words.CHILDREN,
    variants=(
        {
            "small": "kitten",
            "trouble": "It was wet and cold.",
            "cure": "wrapped it in a warm towel",
            "sound": "Meow, meow",
        },
        {
            "small": "bird",
            "trouble": "It had fallen out of its nest.",
            "cure": "put it back into the nest",
            "sound": "Tweet, tweet",
        },
        {
            "small": "puppy",
            "trouble": "It had a thorn in its paw.",
            "cure": "pulled out the thorn",
            "sound": "Woof, woof",
        },
        {
            "small": "duckling",
            "trouble": "It had lost its mother.",
            "cure": "carried it back to the pond",
            "sound": "Quack, quack",
        },
        {
            "small": "lamb",
            "trouble": "It was caught in a bush.",
            "cure": "bent the branches apart",
            "sound": "Baa, baa",
        },
        {"small": "chick", "trouble": "It was very hungry.", "cure": "gave it some corn", "sound": "Cheep, cheep"},
    ),
    steps=(
        (
            "{when} {hero} went for a walk {place.at}.",
            "{when} {hero} was playing {place.at}.",
            "{when} {hero} was on {hero.his} way to {place}.",
        ),
        (
            '"{sound}," said a tiny voice.',
            "Then {hero.he} heard a small sound.",
            "Something was moving {first}.",
        ),
        (
            "{hero} looked {first} and found a little {small}. {trouble}",
            "There sat a little {small}. {trouble}",
            "It was a {small}, not much bigger than a shoe. {trouble}",
        ),
        (
            '"You poor {small}!" said {hero}. "I will help you."',
            '"Do not be afraid," whispered {hero}. "I will not hurt you."',
            "At first the {small} was afraid of {hero}, but {hero.he} spoke softly to it.",
        ),
        (
            "{hero} was not sure what to do, so {hero.he} called {elder}. Together they {cure}.",
            "Very gently {hero} {cure}.",
            "{friend.full} came to help, and together they {cure}.",
        ),
        (
            '"{sound}!" said the {small}, and it sounded like thank you.',
            "The {small} looked at {hero} with bright eyes and was not afraid any more.",
            'Now the {small} was happy. "{sound}!" it said.',
        ),
        (
            "After that, the {small} came to see {hero} every day.",
            "{hero} waved, and the {small} hopped three times for joy.",
            'That night {hero} told {elder} about the {small}. "You have a good heart," said {elder}.',
        ),
        ("", "Small ones need big friends.", "Whoever helps others will never be without friends."),
    ),
)

FEAR = Plot(
    "fear",
    heroes=words.CHILDREN,
    variants=(
        {
            "fright": "the dark",
            "scene": "the lamp went out",
            "advice": "Close your eyes and count to three. The dark is only a blanket for the day.",
            "deed": "counted to three and looked around",
            "found": "The stars were shining through the window.",
        },
        {
            "fright": "thunder",
            "scene": "it began to thunder",
            "advice": "Thunder is only the drum of the clouds. You can drum along.",
            "deed": "took two spoons and drummed along",
            "found": "It sounded like merry music.",
        },
        {
            "fright": "deep water",
            "scene": "everyone went to swim",
            "advice": "Begin where it is shallow. One small step is enough.",
            "deed": "put one foot into the water, and then the other",
            "found": "The water was warm and soft.",
        },
        {
            "fright": "the big dog",
            "scene": "the big dog came down the road",
            "advice": "Stand still and let him smell your hand. He only wants to say hello.",
            "deed": "stood still and held out a hand",
            "found": "The dog licked it and wagged his tail.",
        },
        {
            "fright": "high places",
            "scene": "the others climbed the hill",
            "advice": "Do not look down. Look at the next step, and then at the next.",
            "deed": "took one step, and then another",
            "found": "From the top, all the world looked small and pretty.",
        },
    ),
    steps=(
        (
            "{hero} was afraid of only one thing, and that was {fright}.",
            "There was one thing that {hero} did not like. {hero.He} was afraid of {fright}.",
            "But {hero.he} was very much afraid of {fright}.",
        ),
        (
            "One evening {scene}. {hero} began to shake.",
            "Then {scene}, and {hero} wanted to hide.",
            "One day {scene}. {hero}'s knees turned soft.",
        ),
        (
            '"I cannot do this," said {hero}. "I am too afraid."',
            '"Help, {elder}!" cried {hero}, and {hero.he} held on to {elder}.',
            "{hero} hid behind {elder}, and {elder} waited.",
        ),
        (
            '"I was afraid of it once, too," said {elder}. "{advice}"',
            '{elder} took {hero.his} hand. "{advice}"',
            '{elder} smiled. "Everyone is afraid of something," {elder.he} said. "{advice}"',
        ),
        (
            "{hero} took a deep breath. Then {hero.he} {deed}.",
            "So {hero} {deed}, and {hero.his} heart beat fast.",
            '"I will try," whispered {hero}. Slowly {hero.he} {deed}.',
        ),
        (
            "{found} {hero} began to laugh.",
            "{found} It was not bad at all.",
            'And what do you think? {found} "I did it!" cried {hero}.',
        ),
        (
            '"I am proud of you," said {elder}.',
            "After that, {hero} was not afraid of {fright} any more.",
            '"Again!" said {hero}, and {elder} laughed.',
        ),
        ("", "To be brave is to be afraid and to try.", "And {hero} slept well that night."),
    ),
)

COOKING = Plot(
    "cooking",
    variants=tuple(
        {"dish": dish, "the_dish": the_dish, "missing": missing}
        for dish, the_dish, missing in (
            ("a cake", "the cake", "eggs"),
            ("an apple pie", "the pie", "apples"),
            ("a loaf of bread", "the bread", "flour"),
            ("a pot of soup", "the soup", "carrots"),
            ("a tart", "the tart", "berries"),
            ("a pudding", "the pudding", "milk"),
        )
    ),
    steps=(
        (
            "{when} {hero} wanted to make {dish} for {elder}. How {elder} would like that!",
            "It was {elder}'s birthday, and {hero} wanted to make {dish} for {elder}.",
            "{elder} was ill in bed. So {hero} wanted to make {dish} for {elder}.",
        ),
        (
            "{hero.He} took a big bowl and a spoon. But {hero.he} could find no {missing}.",
            "But when {hero.he} opened the cupboard, there was everything but the {missing}.",
            '"Stir, stir, stir," sang {hero}. But then {hero.he} saw that the {missing} had run out.',
        ),
        (
            '"Without {missing} I cannot make {the_dish}," said {hero}, and {hero.he} was sad.',
            "{hero} looked everywhere, even in the teapot. But there was only tea in it.",
            '"What shall I do now?" asked {hero}.',
        ),
        (
            'So {hero.he} went to {friend.full}. "Have you got some {missing} for me?" {hero.he} asked.',
            "{hero} ran next door to {friend.full} and asked for some {missing}.",
            'Just then {friend.full} came by. "I have {missing} at home," said {friend}.',
        ),
        (
            '"Of course," said {friend}. "May I help you?" They made {the_dish} together.',
            "{friend} gave {hero.him} a whole basket of {missing}, and they set to work.",
            "{friend} brought the {missing}, and they began at once.",
        ),
        (
            "The whole house smelled of {the_dish}, warm and good.",
            "They stirred and tasted, and tasted and stirred, until {the_dish} was ready.",
            "An hour later {the_dish} was ready, and it smelled so good.",
        ),
        (
            'When {elder} saw {the_dish}, {elder.he} smiled. "Did you make this for me?" {elder.he} asked.',
            '"This is the best I ever ate," said {elder}.',
            "{elder} was so happy that {elder.he} kissed them both.",
        ),
        (
            "Then all three sat down and ate until nothing was left.",
            "{hero} gave the biggest piece to {friend}.",
            "They ate together, and {friend} had some more.",
        ),
        ("", "What is made with love tastes best.", "And that was a happy day."),
    ),
)

RAIN = Plot(
    "rain",
    variants=(
        {"plan": "have a picnic", "instead": "had their picnic on a blanket under the table"},
        {"plan": "build a castle of sand", "instead": "built a castle out of boxes"},
        {"plan": "sail a boat on the pond", "instead": "made the bed into a ship and sailed around the world"},
        {"plan": "look for treasure", "instead": "hid buttons in the house and looked for them"},
        {"plan": "sleep in a tent", "instead": "made a tent out of two chairs and a blanket"},
        {"plan": "see the puppet show", "instead": "made puppets out of old socks"},
    ),
    steps=(
        (
            "{hero} and {friend.full} wanted to {plan}.",
            "All week long {hero} and {friend.full} had wanted to {plan}.",
            "Tomorrow {hero} and {friend.full} were going to {plan}. They could hardly sleep.",
        ),
        (
            "But when the day came, it rained and rained.",
            "But in the morning there were dark clouds, and soon it began to rain.",
            "But as soon as they were ready, big drops fell from the sky.",
        ),
        (
            '"Now we cannot {plan}," said {hero} sadly.',
            '"Silly rain," said {friend}, and {friend.he} stamped on the floor.',
            "They stood at the window and looked at the rain with long faces.",
        ),
        (
            '"Rain, rain, go away!" they sang. But the rain did not listen.',
            "They waited and waited, but the rain did not stop.",
            '"Will it ever stop?" asked {friend}. {elder} looked at the sky. "Not today," {elder.he} said.',
        ),
        (
            'Then {hero} had an idea. "We can play inside!" {hero.he} said.',
            '"I know what we can do," said {elder}, and {elder.he} whispered something to {hero}.',
            'Then {friend} had an idea. "Who needs the sun?" {friend.he} asked.',
        ),
        (
            "So they {instead}.",
            "They {instead}, and {elder} came to see it.",
            "And they {instead}. It was so much fun that they forgot the rain.",
        ),
        (
            "When the sun came out again, they did not even see it.",
            '"I hope it rains tomorrow, too," said {hero}.',
            "In the evening a rainbow stood in the sky. It was the best day of the week.",
        ),
        ("", "There is no bad weather for good friends.", "A good idea is better than good weather."),
    ),
)

SEED = Plot(
    "seed",
    variants=(
        {"plant": "sunflower", "result": "It was so tall that it looked over the fence."},
        {"plant": "pumpkin", "result": "It was so big that two had to carry it."},
        {"plant": "carrot", "result": "It was as long as an arm."},
        {"plant": "tulip", "result": "It was as red as the evening sun."},
        {"plant": "bean", "result": "It climbed up to the roof."},
        {"plant": "strawberry", "result": "It was as sweet as honey."},
    ),
    steps=(
        (
            "{when} {elder} gave {hero} a tiny seed. {hero} looked at {elder} and at the seed.",
            "{when} {hero} found a tiny seed and showed it to {elder}. {elder} smiled.",
            '"What is this?" asked {hero} one day. "It is a seed," said {elder}.',
        ),
        (
            '"If you take good care of it, it will be a {plant}," said {elder}.',
            '"A {plant} is sleeping in it," said {elder}. "You have to wake it up."',
        ),
        (
            "{hero} made a hole in the earth and put the seed in. Then {hero.he} gave it some water.",
            "So {hero} planted the seed in the garden and watered it.",
        ),
        (
            "The next day {hero} ran to look, but there was nothing to see.",
            "{hero} sat down beside it and waited. Nothing happened.",
            '"Grow!" said {hero}. But the seed did not grow.',
        ),
        (
            '"It does not work," said {hero}. "Wait a little," said {elder}. "Good things need time."',
            '{hero} wanted to dig it up again. "Do not do that," said {elder}. "It needs rest and water."',
            '"When will it come?" asked {hero}. "When it is ready," said {elder}.',
        ),
        (
            "Every day {hero} watered the seed and sang a song to it.",
            "So {hero} waited. {hero.He} brought water every morning, even in the wind.",
            "Days went by, and weeks. {hero} did not forget the water even once.",
        ),
        (
            "Then one morning a small green leaf looked out of the earth.",
            "One day there was a green tip, as small as a needle.",
        ),
        (
            "It grew and grew, and at last there was a {plant}. {result}",
            "In summer there stood a fine {plant}. {result}",
        ),
        (
            '"I grew it all by myself!" said {hero}. {elder} laughed. "You and the sun and the rain," {elder.he} said.',
            "{hero} was very proud and showed it to {friend.full}.",
            '"It was good that I waited," said {hero}.',
        ),
        ("", "Whoever can wait will be given much.", "{hero} kept one seed for the next year."),
    ),
)

NEWCOMER = Plot(
    "newcomer",
    things=("ball", "kite", "drum", "boat", "train"),
    steps=(
        (
            "{when} {hero} went to {place} with {thing.a}. It was a good {thing}.",
            "{when} {hero} took {hero.his} {thing.full} to {place}. {hero} liked the {thing} very much.",
            "{when} {hero} was playing with {thing.a} {place.at}. The {thing} was new.",
        ),
        (
            "Someone new was standing {first}, all alone. It was {friend.full}.",
            "{friend.full} was sitting {first}. {friend.He} was new and did not know anyone.",
        ),
        (
            "{friend} looked at the ground and did not say a word.",
            '"Hello," said {hero}. But {friend} was too shy to answer.',
            "{friend} saw the {thing}, but {friend.he} did not dare to come near.",
        ),
        (
            "{hero} thought about it. {hero.He} knew how it feels to be alone.",
            '"Why does {friend.he} not play?" thought {hero}. "Perhaps {friend.he} has no friend."',
        ),
        (
            'So {hero} went up to {friend.him}. "Do you want to play with my {thing}?" {hero.he} asked.',
            '{hero} held out the {thing}. "It is more fun with two," {hero.he} said.',
            'Then {hero} put the {thing} down in front of {friend.him}. "You begin," {hero.he} said.',
        ),
        (
            '{friend} looked up and smiled a very small smile. "Yes, please," {friend.he} whispered.',
            '"May I?" asked {friend}. "Of course!" said {hero}.',
        ),
        (
            "They played with the {thing} all day, and {friend} laughed louder than anyone.",
            "Soon the two were running and laughing as if they had known each other for years.",
            "They played until the stars came out.",
        ),
        (
            '"Will you come back tomorrow?" asked {friend}. "Every day," said {hero}.',
            'On the way home {hero} said to {elder}, "I have a new friend."',
            '"I am glad that you came," said {friend}.',
        ),
        ("", "A friend is only one kind word away.", "From then on, nobody was alone {place.at}."),
    ),
)

RACE = Plot(
    "race",
    variants=(
        {"race": "a race around the pond", "prize": "a basket of apples", "the_prize": "the basket of apples"},
        {"race": "a race to the old mill", "prize": "a pot of honey", "the_prize": "the pot of honey"},
        {"race": "a race over the hill", "prize": "a silver bell", "the_prize": "the silver bell"},
        {"race": "a race along the river", "prize": "a golden leaf", "the_prize": "the golden leaf"},
    ),
    steps=(
        (
            "{when} there was {race}. The prize was {prize}.",
            '{when} {elder} called everyone to {race}. "Whoever comes first will have {prize}," said {elder}.',
        ),
        (
            '"I am going to win," said {hero}. {friend.full} wanted to win, too.',
            "{hero} wanted to win so much. But {friend.full} was just as fast.",
            '{friend.full} stood next to {hero}. "I am the fastest," said {friend}.',
        ),
        (
            '"One, two, three, go!" Off they ran.',
            '"Go!" called {elder}, and they ran like the wind.',
        ),
        (
            "First {friend} was in front, and then {hero}.",
            "{hero} was in front, and {friend} was close behind {hero.him}.",
        ),
        (
            "Suddenly {friend} fell over a root and cried out.",
            "But just before the end {friend} slipped and fell down.",
            'Then {hero} heard a cry. "My foot!" called {friend}.',
        ),
        (
            "{hero} could already see the end. But {hero.he} stopped and turned around.",
            "{hero} thought of {the_prize}. Then {hero.he} thought of {friend}, and {hero.he} went back.",
        ),
        (
            '"Hold on to me," said {hero}, and {hero.he} helped {friend.him} up.',
            '"Does it hurt?" asked {hero}. {hero.He} took {friend} by the hand.',
        ),
        (
            "They walked on slowly and came in last of all, side by side.",
            "Arm in arm they came to the end, and everyone clapped.",
        ),
        (
            "{elder} gave {the_prize} to both of them.",
            '"You are the true winner," said {elder} to {hero}. But {hero} shared {the_prize} with {friend}.',
        ),
        ("", "It is good to be fast, but it is better to be kind.", "And that was how they became best friends."),
    ),
)

ASTRAY = Plot(
    "astray",
    variants=tuple(
        {"lure": lure, "guide": guide, "way": way}
        for lure, guide in (
            ("a blue butterfly", "an old owl"),
            ("a golden leaf in the wind", "a slow snail"),
            ("a merry tune", "a farmer with a cart"),
            ("a little white cloud", "a woman with a basket"),
        )
        for way in ("the smell of supper", "the light in the window", "the sound of the bell")
    ),
    steps=(
        (
            '"Do not go too far," {elder} always said. {hero} loved {elder} and was good.',
            "{elder} had told {hero} never to go far from home alone. So {hero} stayed near {elder}.",
        ),
        (
            "{when} {hero} saw {lure} and ran after it.",
            "{when} {hero} followed {lure}, on and on, and did not look back.",
        ),
        (
            "When {hero.he} stopped, {hero.he} did not know where {hero.he} was.",
            "Then it was gone, and everything around {hero} looked strange.",
        ),
        (
            '"Where is my house?" asked {hero}, but nobody answered.',
            "It grew dark. {hero} was cold and afraid.",
            '{hero} called, "{elder}! {elder}!" But {elder} was far away.',
        ),
        (
            'Then {hero.he} met {guide}. "Are you lost?" asked the stranger. {hero} nodded.',
            "Just then {guide} came by and saw {hero.him} crying.",
        ),
        (
            '"Follow {way}," said the stranger. "It will take you home."',
            '"Do not cry," said the stranger. "Look for {way}."',
        ),
        (
            "{hero} said thank you and went on step by step. And there it was, {way}!",
            "{hero} took heart and did so. Soon {hero.he} found {way}, and the path was easy.",
        ),
        (
            "{elder} was standing at the door and took {hero} in {elder.his} arms.",
            '{elder} came running. "There you are!" {elder.he} cried. "I was so worried."',
        ),
        (
            '"I will never go so far again," said {hero}.',
            '"I am sorry," said {hero}. "Next time I will ask first."',
            "{hero} ate two plates of soup and fell asleep at the table.",
        ),
        ("", "There is no place like home.", "The best part of any trip is coming home."),
    ),
)

NOISE = Plot(
    "noise",
    variants=(
        {"noise": "Scratch, scratch", "cause": "the cat, who wanted to come in"},
        {"noise": "Tap, tap", "cause": "a branch at the window"},
        {"noise": "Drip, drip", "cause": "the rain in an old pot"},
        {"noise": "Squeak, squeak", "cause": "a mouse with a crumb of cheese"},
        {"noise": "Hoo, hoo", "cause": "an owl with two round eyes"},
        {"noise": "Bump, bump", "cause": "the garden gate in the wind"},
    ),
    steps=(
        (
            "One night {hero} lay in bed and could not sleep.",
            "It was late, and {hero} was already in bed.",
            "One night the moon was hidden, and all was still.",
        ),
        (
            '"{noise}!" What was that?',
            'Then there was a noise. "{noise}!"',
        ),
        (
            "{hero} pulled the blanket over {hero.his} head.",
            "{hero} sat up in bed, and {hero.his} heart beat fast.",
            '"Is it a monster?" thought {hero}.',
        ),
        (
            '"{noise}!" There it was again, and now it was louder.',
            'It did not stop. "{noise}!" it went, again and again.',
        ),
        (
            '{hero} ran to {elder}. "{elder}, there is something in the dark!" {hero.he} said.',
            '"{elder}!" called {hero}. "There is a monster in my room!"',
        ),
        (
            '{elder} lit a candle. "Come, let us look together," {elder.he} said.',
            '"Then we will say good evening to it," said {elder}, and {elder.he} took {hero.his} hand.',
        ),
        (
            "On tiptoe they went to see. It was only {cause}!",
            "And what did they find? It was {cause}, and nothing else.",
        ),
        (
            'They laughed and laughed. "Good night, monster," said {hero}.',
            '{hero} had to laugh. "I am not afraid of that," {hero.he} said.',
        ),
        (
            "{elder} gave {hero.him} a kiss, and soon {hero} was fast asleep.",
            'Then {hero} went back to bed. "{noise}," it went, but {hero} was already dreaming.',
        ),
        ("", "Things look smaller when you look at them.", "In the light there are no monsters."),
    ),
)

LEARNING = Plot(
    "learning",
    variants=(
        {"skill": "whistle", "first_try": "Only air came out.", "success": "Out came a clear, high note."},
        {
            "skill": "ride a bicycle",
            "first_try": "It shook, and {hero.he} fell into the grass.",
            "success": "The wheels rolled, and {hero.he} did not fall.",
        },
        {
            "skill": "dance",
            "first_try": "{hero.He} fell over {hero.his} own feet.",
            "success": "{hero.His} feet knew the way by themselves.",
        },
        {
            "skill": "skip with a rope",
            "first_try": "The rope got caught around {hero.his} feet.",
            "success": "The rope flew around ten times.",
        },
        {"skill": "tie a bow", "first_try": "It came undone at once.", "success": "The bow held fast."},
        {
            "skill": "skate on the ice",
            "first_try": "Bump! {hero.He} sat on the ice.",
            "success": "{hero.He} flew over the ice like a bird.",
        },
    ),
    steps=(
        (
            "All the others could {skill}. Only {hero} could not.",
            "{hero} wanted to learn to {skill}.",
            "{friend.full} could {skill}, and {hero} wanted to do it, too.",
        ),
        (
            "{when} {hero.he} tried it for the first time. {first_try}",
            "{when} {hero} tried to {skill}. {first_try}",
        ),
        (
            '"I will never learn it," said {hero}.',
            "{hero} was angry and stamped on the ground.",
            "{hero} hung {hero.his} head and wanted to give up.",
        ),
        (
            '"Nobody can do it the first time," said {elder}. {elder} smiled. "Try again."',
            '{elder} laughed. "When I was small, I could not {skill} either," {elder.he} said.',
            '"You cannot do it yet," said {elder}. "Yet is a very good word," said {elder}.',
        ),
        (
            "So {hero} tried again, and then again.",
            "{hero} tried it every day, in the morning and in the evening.",
            "{hero} tried ten times, and ten times it went wrong.",
        ),
        (
            "And then it happened. {success}",
            "One day {hero} closed {hero.his} eyes and tried once more. {success}",
        ),
        (
            '"Look at me!" cried {hero}. "I can {skill}!"',
            '"I can do it! I can do it!" called {hero}, and {elder} clapped.',
        ),
        (
            "Now {hero} teaches it to all who cannot {skill} yet.",
            "That evening {hero} was tired and very proud.",
        ),
        ("", "Whoever tries again will learn it in the end.", "The first step is always the hardest."),
    ),
)

TOWER = Plot(
    "tower",
    variants=(
        {"work": "tower of stones", "ruin": "A goat came along and bumped into it"},
        {"work": "castle of sand", "ruin": "A big wave came and rolled over it"},
        {"work": "house of sticks", "ruin": "The wind blew as hard as it could"},
        {"work": "hut of leaves", "ruin": "A big dog ran right through it"},
        {"work": "bridge of logs", "ruin": "The water in the brook rose and pushed against it"},
    ),
    steps=(
        (
            "{when} {hero} and {friend.full} built a {work}.",
            '"Let us build a {work}," said {hero} to {friend.full}. {when} they began.',
        ),
        (
            "They worked for hours, and it was the finest {work} anyone had ever seen.",
            "{hero} brought what they needed, and {friend} put it in its place.",
        ),
        (
            "Then it happened. {ruin}, and the {work} fell down.",
            "But then came bad luck. {ruin}, and nothing of it was left standing.",
        ),
        (
            '"All our work!" cried {friend}.',
            "{friend} sat down and cried, and {hero} almost cried, too.",
            "They looked at it and could not say a word.",
        ),
        (
            '"It was your fault," said {friend}. "No, it was not," said {hero} softly. "It was nobody\'s fault."',
            '"I will never build anything again," said {friend}.',
            "{friend} wanted to go home.",
        ),
        (
            '{hero} put an arm around {friend.him}. "We will build it again," {hero.he} said.',
            '"Now we know how to do it," said {hero}. "The second one will be better."',
        ),
        (
            "So they began from the start, and this time they made it wide and strong.",
            "{elder} came to help, and with six hands it went fast.",
        ),
        (
            "In the evening the new {work} stood there. It was even bigger than the first.",
            "This time the {work} did not fall, and it stands there to this day.",
        ),
        ("", "Whoever falls can get up again.", "What is built together stands for a long time."),
    ),
)

PRESENT = Plot(
    "present",
    variants=(
        {"gift": "a chain of shells", "material": "shells", "source": "on the beach"},
        {"gift": "a crown of flowers", "material": "flowers", "source": "in the meadow"},
        {"gift": "a little boat of bark", "material": "bark", "source": "in the forest"},
        {"gift": "a picture of leaves", "material": "leaves", "source": "in the park"},
        {"gift": "a pillow of feathers", "material": "feathers", "source": "on the farm"},
    ),
    steps=(
        (
            "Tomorrow was {elder}'s birthday, and {hero} loved {elder}.",
            "It was almost {elder}'s birthday, and {hero} wanted to give {elder} something.",
        ),
        (
            "{hero} looked into {hero.his} money box. There was one coin in it.",
            "{hero} had only one small coin.",
        ),
        (
            "{friend.full} looked at it. It was not enough for a present.",
            "{hero} went to the shop with {friend.full}, but everything cost too much.",
            '{hero} told {friend.full} about it. "What can I do?" {hero.he} asked.',
        ),
        (
            '"I will make a present," said {hero}.',
            '"You can make something, and I will help you," said {friend}.',
        ),
        (
            "So they went and looked for {material} {source}.",
            "They went out and found the best {material} {source}.",
        ),
        (
            "All evening they sat at the table and made {gift}.",
            "It was hard work, but at last {gift} was ready.",
        ),
        (
            "The next day {hero}'s hands shook a little. {hero.He} was not sure that {elder} would like it.",
            '"It is only {gift}," said {hero} when the day had come.',
        ),
        (
            '{elder} looked at it for a long time. "You made this for me?" {elder.he} asked, and smiled.',
            '"This is the finest present of all," said {elder}, and {elder.he} hugged {hero.him}.',
        ),
        (
            "{elder} kept it beside {elder.his} bed for ever.",
            "Then they ate cake, and {friend} was there, too.",
        ),
        ("", "A gift from the heart costs nothing.", "And the coin is still in the box."),
    ),
)

MOON = Plot(
    "moon",
    variants=tuple(
        {"wish": wish, "the_wish": the_wish, "trap": trap, "lesson": lesson}
        for wish, the_wish, trap, lesson in (
            ("the moon", "the moon", "a big bucket", "The moon belongs to everyone"),
            ("a star", "the star", "a butterfly net", "A star shines best in the sky"),
            ("the rainbow", "the rainbow", "a big jar", "The rainbow is there for all of us"),
            ("a swallow", "the swallow", "a basket with a lid", "A swallow has to be free"),
            ("a cloud", "the cloud", "a big sack", "A cloud has far to go"),
        )
    ),
    steps=(
        (
            "One day {hero} looked up at the sky and saw {wish}.",
            '"Oh," said {hero} one day, "I wish I had {wish}!"',
        ),
        (
            '"I want to catch it and keep it in my room," said {hero}.',
            "{hero} wanted to have it all to {hero.self}.",
        ),
        (
            "So {hero.he} took {trap} and went up the hill.",
            '"I will catch it with {trap}," said {hero}, and off {hero.he} went.',
        ),
        (
            '{friend.full} was sitting on the hill. "What are you doing?" asked {friend}.',
            "On the way {hero.he} met {friend.full}, who wanted to come along.",
        ),
        (
            "{hero} tried and tried, but there was nothing in it.",
            '"I have it!" cried {hero}. But when they looked, it was gone.',
            "{hero} ran and jumped until {hero.he} was out of breath, but {the_wish} was too far away.",
        ),
        (
            '{hero} was sad. "{lesson}," said {friend}. "Let us look at it together."',
            '"{lesson}," said {friend}. {hero} thought about it for a while.',
        ),
        (
            "So they sat side by side in the grass and looked up, and it was beautiful.",
            "They lay down in the grass. Never had {the_wish} looked so beautiful.",
        ),
        (
            'At home {hero} told {elder} about it. "Now you have it in your heart," said {elder}.',
            '"I did not catch it," said {hero} at home. "But I saw it with a friend."',
        ),
        ("", "The most beautiful things belong to nobody.", "And {hero} dreamed of {the_wish} all night."),
    ),
)

HONEY = Plot(
    "honey",
    variants=tuple(
        {"treat": treat, "mark": mark}
        for treat, mark in (
            ("honey", "a golden drop"),
            ("cherry jam", "a red spot"),
            ("cream", "a white spot"),
            ("plum cake", "a crumb"),
        )
    ),
    steps=(
        (
            "On the table stood {elder}'s {treat}. {elder} had made the {treat} for the evening.",
            '{elder} had made {treat}. "The {treat} is for tonight," said {elder}, and {elder.he} went out.',
        ),
        (
            "{hero} only wanted to smell it. Then {hero.he} wanted to taste it, just once.",
            '"Only a tiny bit," said {hero} to {hero.self}.',
        ),
        (
            "But it tasted so good that {hero.he} ate and ate until nothing was left.",
            "One bite, and one more, and one more. Soon the {treat} was all gone.",
        ),
        (
            'In the evening {elder} came home. "Who ate the {treat}?" {elder.he} asked.',
            '"Where is the {treat}?" asked {elder} in surprise.',
        ),
        (
            '"It was the cat," said {hero}. But {hero.his} face grew hot.',
            '"I do not know," said {hero}, and {hero.he} looked at the floor.',
        ),
        (
            '"How strange," said {elder}. "You have {mark} on your nose."',
            "{elder} looked at {hero}. On the tip of {hero.his} nose there was {mark}.",
        ),
        (
            '{hero} began to cry. "I ate it," {hero.he} said. "And then I told a lie. I am sorry."',
            '"I am sorry," said {hero} in a small voice. "It was me."',
        ),
        (
            '"Next time, ask me first," said {elder}, and {elder.he} wiped the nose clean.',
            '{elder} nodded. "It is good that you told me," {elder.he} said. "Tomorrow you will help me to make more."',
        ),
        (
            "The next day they made new {treat}, and {hero} did not taste it even once.",
            "{hero} helped all the next day, and in the evening they ate the {treat} together.",
        ),
        ("", "A lie has short legs.", "And it tasted twice as good."),
    ),
)

PLOTS = (
    LOST,
    STUCK,
    SHARING,
    BROKEN,
    RESCUE,
    FEAR,
    COOKING,
    RAIN,
    SEED,
    NEWCOMER,
    RACE,
    ASTRAY,
    NOISE,
    LEARNING,
    TOWER,
    PRESENT,
    MOON,
    HONEY,
)
